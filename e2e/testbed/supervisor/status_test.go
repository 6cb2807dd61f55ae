package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/bed"
	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/process"
)

func TestTheStatusTellsWhatHasCrashedAndTheEndOfItsLog(t *testing.T) {
	self, err := process.Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	gone := self
	gone.Started--
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("no space left on device\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	up := &bed.Bed{Clusters: []bed.Cluster{{Index: 1, Name: "management", Components: []bed.Component{
		{Name: "etcd", Ports: []int{20001, 20002}, Process: &self},
		{Name: "kube-apiserver", Log: log, Process: &gone},
		{Name: "controllers"},
	}}}}
	var out strings.Builder
	if err := report(&out, up); err == nil {
		t.Error("no error, though not everything runs")
	}
	states := make(map[string]string)
	for line := range strings.Lines(out.String()) {
		if fields := strings.Fields(line); len(fields) > 3 && fields[0] == "1" {
			states[fields[2]] = fields[3]
		}
	}
	for component, want := range map[string]string{"etcd": "running", "kube-apiserver": "crashed", "controllers": "not"} {
		if states[component] != want {
			t.Errorf("%s is %q, want %q, in\n%s", component, states[component], want, out.String())
		}
	}
	for _, want := range []string{"20001,20002", "no space left on device"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}

	up.Clusters[0].Components = up.Clusters[0].Components[:1]
	if err := report(&out, up); err != nil {
		t.Errorf("everything runs: %v", err)
	}
}
