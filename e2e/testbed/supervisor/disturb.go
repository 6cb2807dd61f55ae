package main

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/bed"
	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/cluster"
	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/layout"
	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/process"
)

// returnDeadline is how long a component may take to serve again.
const returnDeadline = time.Minute

// disturbed is one cluster of a test bed, and what it takes to change its record.
type disturbed struct {
	store   bed.Store
	bed     *bed.Bed
	cluster *bed.Cluster
	plan    *cluster.Plan
}

// disturb reads the command line of a command whose first operand is a cluster.
func disturb(checkout layout.Checkout, arguments *arguments, args []string) (*disturbed, []string, error) {
	operands, err := arguments.choosesBed().read(args)
	if err != nil {
		return nil, nil, err
	}
	store, err := bed.Open(checkout.Beds())
	if err != nil {
		return nil, nil, err
	}
	up, err := store.Load(arguments.bed)
	if err != nil {
		return nil, nil, err
	}
	index, err := number(operands[0], "the cluster", len(up.Clusters))
	if err != nil {
		return nil, nil, err
	}
	found, err := up.Cluster(index)
	if err != nil {
		return nil, nil, err
	}
	etcd, server := found.Component(cluster.Etcd), found.Component(cluster.APIServer)
	plan := &cluster.Plan{
		Index:     index,
		Directory: filepath.Dir(found.Kubeconfig),
		Ports:     cluster.Ports{EtcdClients: etcd.Ports[0], EtcdPeers: etcd.Ports[1], APIServer: server.Ports[0]},
		// Beside the control loops, which are always ours.
		Programs: cluster.Programs{
			EtcdUtility: filepath.Join(filepath.Dir(found.Component(cluster.Controllers).Command.Program), "etcdutl"),
		},
	}
	return &disturbed{store, up, found, plan}, operands[1:], nil
}

// component adds the flag that chooses a component.
func component(arguments *arguments) *string {
	return arguments.String("component", cluster.APIServer, "which component")
}

func (d *disturbed) find(name string) (*bed.Component, error) {
	if found := d.cluster.Component(name); found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("%s has no component %q", d.cluster.Name, name)
}

func (d *disturbed) stop(name string) error {
	found, err := d.find(name)
	if err != nil || found.Process == nil {
		return err
	}
	if err := found.Process.Kill(killDeadline); err != nil {
		return fmt.Errorf("stopping %s of %s: %w", name, d.cluster.Name, err)
	}
	found.Process = nil
	return d.store.Save(d.bed)
}

func (d *disturbed) start(ctx context.Context, name string) error {
	found, err := d.find(name)
	if err != nil {
		return err
	}
	if found.Process != nil && found.Process.Running() {
		return fmt.Errorf("%s of %s runs already", name, d.cluster.Name)
	}
	started, err := process.Start(found.Command)
	if err != nil {
		return fmt.Errorf("starting %s of %s: %w", name, d.cluster.Name, err)
	}
	found.Process = &started.Identity
	if err := d.store.Save(d.bed); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, returnDeadline)
	defer cancel()
	return d.plan.Await(ctx, name)
}

func stop(_ context.Context, checkout layout.Checkout, args []string) error {
	arguments := newArguments("stop", "I")
	name := component(arguments)
	disturbed, _, err := disturb(checkout, arguments, args)
	if err != nil {
		return err
	}
	return disturbed.stop(*name)
}

func start(ctx context.Context, checkout layout.Checkout, args []string) error {
	arguments := newArguments("start", "I")
	name := component(arguments)
	disturbed, _, err := disturb(checkout, arguments, args)
	if err != nil {
		return err
	}
	return disturbed.start(ctx, *name)
}

func pause(_ context.Context, checkout layout.Checkout, args []string) error {
	return signalled("pause", syscall.SIGSTOP, checkout, args)
}

func resume(_ context.Context, checkout layout.Checkout, args []string) error {
	return signalled("resume", syscall.SIGCONT, checkout, args)
}

func signalled(command string, signal syscall.Signal, checkout layout.Checkout, args []string) error {
	arguments := newArguments(command, "I")
	name := component(arguments)
	disturbed, _, err := disturb(checkout, arguments, args)
	if err != nil {
		return err
	}
	found, err := disturbed.find(*name)
	if err != nil {
		return err
	}
	if found.Process == nil || !found.Process.Running() {
		return fmt.Errorf("%s of %s does not run", *name, disturbed.cluster.Name)
	}
	return syscall.Kill(found.Process.PID, signal)
}

func snapshot(ctx context.Context, checkout layout.Checkout, args []string) error {
	disturbed, rest, err := disturb(checkout, newArguments("snapshot", "I", "FILE"), args)
	if err != nil {
		return err
	}
	return disturbed.plan.Snapshot(ctx, rest[0])
}

// restore has etcd go back to a snapshot, and the API server start anew over it, as it must.
func restore(ctx context.Context, checkout layout.Checkout, args []string) error {
	arguments := newArguments("restore", "I", "FILE")
	bump := arguments.Uint64("bump-revision", 1_000_000_000,
		"by how much revisions are higher from then on, so that watches notice; with 0 they go back in time")
	disturbed, rest, err := disturb(checkout, arguments, args)
	if err != nil {
		return err
	}
	for _, name := range []string{cluster.APIServer, cluster.Etcd} {
		if err := disturbed.stop(name); err != nil {
			return err
		}
	}
	if err := disturbed.plan.Restore(ctx, rest[0], *bump); err != nil {
		return err
	}
	for _, name := range []string{cluster.Etcd, cluster.APIServer} {
		if err := disturbed.start(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
