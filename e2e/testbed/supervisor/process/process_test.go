package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const deadline = 10 * time.Second

func startShell(t *testing.T, script string) (*Started, string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	started, err := Start(Command{Program: "/bin/sh", Args: []string{"-c", script}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return started, log
}

func awaitEnd(t *testing.T, started *Started) {
	t.Helper()
	select {
	case <-started.Ended:
	case <-time.After(deadline):
		t.Fatalf("process %d has not ended after %s", started.Identity.PID, deadline)
	}
}

func TestAKilledProcessIsGone(t *testing.T) {
	started, _ := startShell(t, "sleep 600")
	if !started.Identity.Running() {
		t.Fatal("it does not run")
	}
	if err := started.Identity.Kill(deadline); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, started)
	if started.Identity.Running() {
		t.Error("it still runs")
	}
	if err := started.Identity.Kill(deadline); err != nil {
		t.Errorf("killing it once more: %v", err)
	}
}

func TestAProcessThatCrashesSaysHowAndLeavesItsLog(t *testing.T) {
	started, log := startShell(t, "echo one; echo two >&2; exit 3")
	awaitEnd(t, started)
	if got := started.Result(); got == nil || got.Error() != "exit status 3" {
		t.Errorf("it ended with %v, want exit status 3", got)
	}
	tail, err := Tail(log, 1)
	if err != nil {
		t.Fatal(err)
	}
	if tail != "two" {
		t.Errorf("the log ends with %q, want %q", tail, "two")
	}
}

func TestARecycledPidIsNotTheSameProcess(t *testing.T) {
	self, err := Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if !self.Running() {
		t.Error("this process does not recognise itself")
	}
	later, otherBoot := self, self
	later.Started--
	otherBoot.Boot = "another"
	for _, other := range []Identity{later, otherBoot} {
		if other.Running() {
			t.Errorf("%+v passes for %+v", self, other)
		}
		if err := other.Kill(deadline); err != nil { // would end this test
			t.Error(err)
		}
	}
}

func TestAProcessNameWithBlanksAndParenthesesDoesNotConfuse(t *testing.T) {
	parsed, err := parseStat([]byte("42 (a) b) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (stat{state: "S", started: 98765}); parsed != want {
		t.Errorf("got %+v, want %+v", parsed, want)
	}
	if _, err := parseStat([]byte("42 (a) S")); err == nil {
		t.Error("a stat that is cut off passes")
	}
}

func TestMemoryIsTheProportionalShare(t *testing.T) {
	got, err := parsePss([]byte("5600-7fff ---p 00000000 00:00 0 [rollup]\nRss:   2000 kB\nPss:    1500 kB\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(1500 << 10); got != want {
		t.Errorf("got %d bytes, want %d", got, want)
	}
}

func TestTheTailOfALongLogIsItsLastLines(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	content := strings.Repeat("a line that is long enough to fill the log quickly\n", 2000) + "last but one\nlast\n"
	if err := os.WriteFile(log, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	tail, err := Tail(log, 2)
	if err != nil {
		t.Fatal(err)
	}
	if want := "last but one\nlast"; tail != want {
		t.Errorf("got %q, want %q", tail, want)
	}
}
