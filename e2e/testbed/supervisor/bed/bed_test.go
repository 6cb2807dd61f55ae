package bed

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/process"
)

func openStore(t *testing.T) Store {
	t.Helper()
	store, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func newBed(name string, ports ...int) *Bed {
	return &Bed{
		Name:      name,
		Directory: "/tmp/somewhere",
		Created:   time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Clusters: []Cluster{{Index: 1, Name: "management", Components: []Component{
			{Name: "etcd", Ports: ports, Process: &process.Identity{PID: 7, Started: 8, Boot: "9"}},
		}}},
	}
}

func TestARecordComesBackAsItWasSaved(t *testing.T) {
	store, saved := openStore(t), newBed("default", 20001)
	if err := store.Save(saved); err != nil {
		t.Fatal(err)
	}
	loaded, err := store.Load("default")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(saved, loaded) {
		t.Errorf("saved %+v, loaded %+v", saved, loaded)
	}
}

func TestATestBedThatIsNotUpHasNoRecord(t *testing.T) {
	store := openStore(t)
	if err := store.Save(newBed("gone")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // removing is idempotent
		if err := store.Remove("gone"); err != nil {
			t.Fatal(err)
		}
	}
	if bed, err := store.Load("gone"); !errors.Is(err, ErrNone) {
		t.Errorf("got %+v, %v; want %v", bed, err, ErrNone)
	}
}

func TestABrokenRecordIsNamed(t *testing.T) {
	store := openStore(t)
	if err := os.WriteFile(store.path("broken"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Load("broken"); err == nil || !strings.Contains(err.Error(), store.path("broken")) {
		t.Errorf("the error is %v and does not name the file", err)
	}
}

func TestThePortsOfAllTestBedsAreTaken(t *testing.T) {
	store := openStore(t)
	for _, bed := range []*Bed{newBed("a", 20001, 20002), newBed("b", 20003)} {
		if err := store.Save(bed); err != nil {
			t.Fatal(err)
		}
	}
	beds, err := store.All()
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]bool{20001: true, 20002: true, 20003: true}
	if taken := TakenPorts(beds); !reflect.DeepEqual(taken, want) {
		t.Errorf("taken are %v, want %v", taken, want)
	}
}

func TestANameIsFitForAFileName(t *testing.T) {
	for name, valid := range map[string]bool{
		"default": true, "run-2": true, "x": true,
		"": false, "../x": false, "-x": false, "X": false, strings.Repeat("x", 41): false,
	} {
		if err := CheckName(name); valid != (err == nil) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestAnIndexOutsideTheTestBedIsRefused(t *testing.T) {
	bed := newBed("default")
	if cluster, err := bed.Cluster(1); err != nil || cluster.Name != "management" {
		t.Errorf("cluster 1 is %+v, %v", cluster, err)
	}
	for _, index := range []int{0, 2} {
		if _, err := bed.Cluster(index); err == nil {
			t.Errorf("there is a cluster %d", index)
		}
	}
}

func TestATestBedLivesWhileItIsStartedAndWhileAnythingOfItRuns(t *testing.T) {
	self, err := process.Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	dead, starting, up := newBed("dead"), newBed("starting"), newBed("up")
	starting.Launcher = self
	up.Clusters[0].Components[0].Process = &self
	for bed, alive := range map[*Bed]bool{dead: false, starting: true, up: true} {
		if bed.Alive() != alive {
			t.Errorf("%s is alive: %t, want %t", bed.Name, bed.Alive(), alive)
		}
	}
}
