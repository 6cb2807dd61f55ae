package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/bed"
	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/process"
)

func newLaunch(t *testing.T) launch {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	store, err := bed.Open(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	return launch{store: store, begun: time.Now()}
}

func TestTwoTestBedsShareNeitherDirectoryNorPorts(t *testing.T) {
	one := newLaunch(t)
	two := launch{store: one.store, begun: one.begun}
	if err := errors.Join(one.reserve("one", 3), two.reserve("two", 3)); err != nil {
		t.Fatal(err)
	}
	if one.bed.Directory == two.bed.Directory {
		t.Errorf("both are in %s", one.bed.Directory)
	}
	taken := bed.TakenPorts([]*bed.Bed{one.bed})
	for port := range bed.TakenPorts([]*bed.Bed{two.bed}) {
		if taken[port] {
			t.Errorf("both have port %d", port)
		}
	}
	if count := len(taken); count != 9 {
		t.Errorf("three clusters have %d ports, want 9", count)
	}
}

func TestANameThatIsUpIsRefusedAndSaysTheRemedy(t *testing.T) {
	one := newLaunch(t)
	two := launch{store: one.store, begun: one.begun}
	if err := one.reserve("default", 1); err != nil { // by this process, which lives
		t.Fatal(err)
	}
	if err := two.reserve("default", 1); err == nil || !strings.Contains(err.Error(), "hack/testbed down --name default") {
		t.Errorf("the error is %v", err)
	}
}

func TestATestBedThatDiedMakesRoomForOneOfItsName(t *testing.T) {
	one := newLaunch(t)
	two := launch{store: one.store, begun: one.begun}
	if err := one.reserve("default", 1); err != nil {
		t.Fatal(err)
	}
	one.bed.Launcher = process.Identity{}
	if err := one.store.Save(one.bed); err != nil {
		t.Fatal(err)
	}
	if err := two.reserve("default", 1); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(one.bed.Directory); err == nil {
		t.Errorf("the data of the dead one is still in %s", one.bed.Directory)
	}
}

func TestADirectoryThatIsNoneOfATestBedIsNotRemoved(t *testing.T) {
	launch, directory := newLaunch(t), t.TempDir()
	if err := end(launch.store, &bed.Bed{Name: "odd", Directory: directory}); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat(directory); err != nil {
		t.Error(err)
	}
}

func TestTheFirstErrorIsTheOneThatCounts(t *testing.T) {
	crash, consequence := errors.New("crash"), errors.New("consequence")
	var told []error
	first := firstError{told: func(err error) { told = append(told, err) }}
	first.is(crash)
	first.is(consequence)
	if first.get() != crash || len(told) != 1 || told[0] != crash {
		t.Errorf("got %v, told %v", first.get(), told)
	}
}
