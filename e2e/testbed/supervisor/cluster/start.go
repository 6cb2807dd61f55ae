package cluster

import (
	"context"
	"fmt"

	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/process"
)

// Observer is told what happens while a cluster starts.
type Observer struct {
	// Say takes a line of progress.
	Say func(line string)
	// Started takes each process as soon as it is there, and what it was started with.
	Started func(component string, command process.Command, identity process.Identity) error
	// Crashed takes a component that ended by itself; also after Start has returned.
	Crashed func(crash *CrashError)
}

// CrashError is a component that ended by itself.
type CrashError struct {
	Cluster, Component string
	// Result is how it ended, Tail the end of its log.
	Result error
	Tail   string
}

const tailLines = 20

func (e *CrashError) Error() string {
	return fmt.Sprintf("%s of %s has ended (%v); the end of its log:\n%s", e.Component, e.Cluster, e.Result, e.Tail)
}

// Start starts all components and returns when the cluster is ready for use.
func (p *Plan) Start(ctx context.Context, observer Observer) error {
	probe, err := newProbe(p)
	if err != nil {
		return fmt.Errorf("preparing to watch %s: %w", p.Name(), err)
	}
	for _, step := range []struct {
		component string
		command   process.Command
		awaited   string
		check     func(ctx context.Context) error
	}{
		{Etcd, p.etcd(), "etcd of %s to be healthy", probe.etcdHealthy},
		{APIServer, p.apiServer(), "the API server of %s to be ready", probe.apiServerReady},
		{Controllers, p.controllers(), "", nil}, // starts together with the next one
		{FakeKubelet, p.fakeKubelet(), "the Nodes of %s to be ready", probe.nodesReady},
	} {
		if err := p.run(step.component, step.command, observer); err != nil {
			return err
		}
		if step.check == nil {
			continue
		}
		if err := await(ctx, fmt.Sprintf(step.awaited, p.Name()), step.check); err != nil {
			return err
		}
		observer.Say(fmt.Sprintf("%s: %s ready", p.Name(), step.component))
	}
	if err := await(ctx, "the controllers of "+p.Name()+" to make a ServiceAccount", probe.controllersWork); err != nil {
		return err
	}
	observer.Say(fmt.Sprintf("%s: %s ready", p.Name(), Controllers))
	return nil
}

// Await waits until a component of a cluster that has been started once serves again. Components that
// nobody asks anything are not waited for.
func (p *Plan) Await(ctx context.Context, component string) error {
	probe, err := newProbe(p)
	if err != nil {
		return fmt.Errorf("preparing to watch %s: %w", p.Name(), err)
	}
	switch component {
	case Etcd:
		return await(ctx, "etcd of "+p.Name(), probe.etcdHealthy)
	case APIServer:
		return await(ctx, "the API server of "+p.Name(), probe.apiServerReady)
	default:
		return nil
	}
}

func (p *Plan) run(component string, command process.Command, observer Observer) error {
	started, err := process.Start(command)
	if err != nil {
		return fmt.Errorf("starting %s of %s: %w", component, p.Name(), err)
	}
	go func() {
		<-started.Ended
		tail, err := process.Tail(command.Log, tailLines)
		if err != nil {
			tail = err.Error()
		}
		observer.Crashed(&CrashError{Cluster: p.Name(), Component: component, Result: started.Result(), Tail: tail})
	}()
	return observer.Started(component, command, started.Identity)
}
