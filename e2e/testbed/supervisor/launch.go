package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/bed"
	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/cluster"
	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/ports"
	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/process"
)

// directoryPrefix begins the name of every test bed's directory: nothing else is ever removed.
const directoryPrefix = "ferromesh-testbed-"

// launch is a test bed on its way up.
type launch struct {
	store bed.Store
	begun time.Time
	// plan is what all clusters have in common.
	plan cluster.Plan
	// definitions is a file with CRDs for all clusters but the first; empty for none.
	definitions string

	plans []*cluster.Plan

	mu  sync.Mutex // guards what follows: the clusters start at the same time
	bed *bed.Bed
}

func (l *launch) say(line string) {
	fmt.Printf("[%5.1fs] %s\n", time.Since(l.begun).Seconds(), line)
}

// reserve takes the name, a directory and the ports, and writes them down.
func (l *launch) reserve(name string, count int) error {
	return l.store.Exclusively(func() error {
		beds, err := l.store.All()
		if err != nil {
			return err
		}
		for _, other := range beds {
			if other.Name != name {
				continue
			}
			if other.Alive() {
				return fmt.Errorf("test bed %s is up already: end it with `hack/testbed down --name %s`, or choose another --name", name, name)
			}
			l.say(fmt.Sprintf("clearing away test bed %s, none of which runs any more", name))
			if err := end(l.store, other); err != nil {
				return err
			}
		}
		free, err := ports.Free(count*cluster.PortCount, bed.TakenPorts(beds))
		if err != nil {
			return fmt.Errorf("choosing ports: %w", err)
		}
		directory, err := os.MkdirTemp("", directoryPrefix)
		if err != nil {
			return fmt.Errorf("making the directory of the test bed: %w", err)
		}
		launcher, err := process.Identify(os.Getpid())
		if err != nil {
			return fmt.Errorf("identifying this process: %w", err)
		}
		l.lay(name, directory, slices.Collect(slices.Chunk(free, cluster.PortCount)))
		l.bed.Launcher = launcher
		return l.store.Save(l.bed)
	})
}

// lay makes the plans and the record of clusters with these ports.
func (l *launch) lay(name, directory string, ports [][]int) {
	l.bed = &bed.Bed{Name: name, Directory: directory, Created: l.begun}
	for i, list := range ports {
		plan := l.plan
		plan.Index = i + 1
		plan.Directory = filepath.Join(directory, plan.Name())
		plan.Ports = cluster.NewPorts(list)
		l.plans = append(l.plans, &plan)

		record := bed.Cluster{Index: plan.Index, Name: plan.Name(), Kubeconfig: plan.Kubeconfig()}
		for _, component := range []string{cluster.Etcd, cluster.APIServer, cluster.Controllers, cluster.FakeKubelet} {
			record.Components = append(record.Components, bed.Component{
				Name: component, Log: plan.Log(component), Ports: plan.Ports.Of(component),
			})
		}
		l.bed.Clusters = append(l.bed.Clusters, record)
	}
}

// run starts all clusters at the same time and returns when all are ready, or with what went wrong
// first: that ends the other starts.
func (l *launch) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	first := firstError{told: cancel}
	var starting sync.WaitGroup
	for _, plan := range l.plans {
		starting.Go(func() {
			if err := l.start(ctx, plan, &first); err != nil {
				first.is(err)
			}
		})
	}
	starting.Wait()
	return first.get()
}

func (l *launch) start(ctx context.Context, plan *cluster.Plan, first *firstError) error {
	if err := plan.WriteFiles(); err != nil {
		return err
	}
	err := plan.Start(ctx, cluster.Observer{
		Say: l.say,
		Started: func(component string, command process.Command, identity process.Identity) error {
			l.mu.Lock()
			defer l.mu.Unlock()
			record := l.bed.Clusters[plan.Index-1].Component(component)
			record.Command, record.Process = command, &identity
			return l.store.Save(l.bed)
		},
		Crashed: func(crash *cluster.CrashError) { first.is(crash) },
	})
	if err != nil || l.definitions == "" || plan.Index == 1 {
		return err
	}
	if err := plan.Install(ctx, l.definitions); err != nil {
		return err
	}
	l.say(fmt.Sprintf("%s: the CRDs of Istio are served", plan.Name()))
	return nil
}

// firstError keeps the first of several errors and passes it on.
type firstError struct {
	told func(err error)

	mu  sync.Mutex
	err error
}

func (f *firstError) is(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
		f.told(err)
	}
}

func (f *firstError) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
