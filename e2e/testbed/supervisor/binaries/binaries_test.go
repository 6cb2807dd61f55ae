package binaries

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/layout"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func newModule(t *testing.T) string {
	t.Helper()
	module := t.TempDir()
	for path, content := range map[string]string{
		"go.mod": "module x", "go.sum": "", "components/main.go": "package main", "supervisor/main.go": "package main",
	} {
		write(t, filepath.Join(module, path), content)
	}
	return module
}

func fingerprintOf(t *testing.T, module string, flags ...string) string {
	t.Helper()
	state, err := fingerprint(module, []string{"components"}, flags)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func TestTheFingerprintFollowsTheSourcesOfTheProgramAlone(t *testing.T) {
	module := newModule(t)
	before := fingerprintOf(t, module)
	for path, changes := range map[string]bool{
		"README.md":               false,
		"supervisor/main.go":      false,
		"components/main_test.go": false,
		"go.sum":                  true,
		"components/main.go":      true,
		"components/new/file.go":  true,
	} {
		write(t, filepath.Join(module, path), "// changed")
		after := fingerprintOf(t, module)
		if changed := after != before; changed != changes {
			t.Errorf("changing %s changes the fingerprint: %t, want %t", path, changed, changes)
		}
		before = after
	}
	if fingerprintOf(t, module, "-race") == before {
		t.Error("other flags have the same fingerprint")
	}
}

func TestASecondBuildOfTheSameSourcesDoesNothing(t *testing.T) {
	checkout, module := layout.Checkout(t.TempDir()), newModule(t)
	fills := 0
	fill := func(directory string) error {
		fills++
		write(t, filepath.Join(directory, program), "binary")
		return nil
	}
	build := func() string {
		directory, err := cached(checkout, "components-", module, []string{"components"}, fill)
		if err != nil {
			t.Fatal(err)
		}
		return directory
	}
	first := build()
	if again := build(); again != first || fills != 1 {
		t.Errorf("filled %d times, in %s and %s", fills, first, again)
	}

	write(t, filepath.Join(module, "components/main.go"), "// changed")
	if changed := build(); changed == first || fills != 2 {
		t.Errorf("after a change: filled %d times, in %s", fills, changed)
	}
	if _, err := os.Stat(first); err == nil {
		t.Errorf("the former build %s is still there", first)
	}
}

func TestABuildThatFailsLeavesNothingBehind(t *testing.T) {
	checkout, module := layout.Checkout(t.TempDir()), newModule(t)
	_, err := cached(checkout, "components-", module, []string{"components"},
		func(string) error { return fmt.Errorf("no disk space") })
	if err == nil {
		t.Fatal("it did not fail")
	}
	entries, err := os.ReadDir(checkout.Cache())
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestProgressCountsPackagesAndModulesAndKeepsComplaints(t *testing.T) {
	p := newProgress()
	p.expect(2400)
	for _, part := range []string{
		"go: downloading k8s.io/api v0.36.3\nk8s.io/api/co", "re/v1\nk8s.io/client-go/rest\n",
		"# example.com/broken\nbroken.go:1:2: undefined: x\n",
	} {
		if _, err := p.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	line := p.String()
	for _, want := range []string{"packages compiled: 2 of at most 2400", "modules downloaded: 1", "(k8s.io/client-go/rest)"} {
		if !strings.Contains(line, want) {
			t.Errorf("no %q in %q", want, line)
		}
	}
	if got, want := p.complaints(), "# example.com/broken\nbroken.go:1:2: undefined: x"; got != want {
		t.Errorf("complaints are %q, want %q", got, want)
	}
}

func TestProgramsOfTheUserComeBeforeThoseThatWereBuilt(t *testing.T) {
	assets, built := t.TempDir(), Built{Directory: "/built"}
	if _, err := built.Programs(assets); err == nil || !strings.Contains(err.Error(), AssetsVariable) {
		t.Errorf("an empty directory of assets: %v", err)
	}
	write(t, filepath.Join(assets, "etcd"), "")
	write(t, filepath.Join(assets, "kube-apiserver"), "")
	programs, err := built.Programs(assets)
	if err != nil {
		t.Fatal(err)
	}
	if programs.Etcd != filepath.Join(assets, "etcd") || programs.APIServer != filepath.Join(assets, "kube-apiserver") {
		t.Errorf("the user's programs are not used: %+v", programs)
	}
	if programs.Kubectl != "/built/kubectl" || programs.Controllers != "/built/controllers" {
		t.Errorf("what the user has not brought is not ours: %+v", programs)
	}
}

func TestTheComponentsTellTheVersionThatIsPinned(t *testing.T) {
	flags := linkFlags("v1.36.3")
	for _, want := range []string{"version.gitVersion=v1.36.3", "version.gitMajor=1", "version.gitMinor=36"} {
		if !strings.Contains(flags, want) {
			t.Errorf("no %s in %s", want, flags)
		}
	}
}
