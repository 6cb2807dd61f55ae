// Package kubelet stands in for the scheduler, the kubelets and the cloud of a test cluster: it
// registers Nodes, binds Pods to them, says that they run and are ready, removes those that are
// deleted, and gives LoadBalancer Services an address. Nothing runs behind any of it.
package kubelet

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ferromesh/ferromesh/e2e/testbed/shape"
)

// options is the command line.
type options struct {
	kubeconfig string
	cluster    int
	nodes      int
}

// Main plays all nodes of one cluster until ctx is done.
func Main(ctx context.Context, args []string) error {
	opts, err := parse(args)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", opts.kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig %s: %w", opts.kubeconfig, err)
	}
	rest.AddUserAgent(config, "testbed-fake-kubelet")
	config.QPS = -1 // a test cluster has nobody to be fair to
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	return run(ctx, client, opts.cluster, opts.nodes)
}

func parse(args []string) (options, error) {
	var opts options
	flags := flag.NewFlagSet("fake-kubelet", flag.ContinueOnError)
	flags.StringVar(&opts.kubeconfig, "kubeconfig", "", "credentials of a cluster administrator")
	flags.IntVar(&opts.cluster, "cluster", 1, "number of the cluster; picks its region and address blocks")
	flags.IntVar(&opts.nodes, "nodes", 2, "how many Nodes to register")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if opts.cluster < 1 || opts.cluster > shape.MaxClusters {
		return options{}, fmt.Errorf("--cluster is %d: give a number from 1 to %d", opts.cluster, shape.MaxClusters)
	}
	if opts.nodes < 1 || opts.nodes > shape.MaxNodes {
		return options{}, fmt.Errorf("--nodes is %d: give a number from 1 to %d", opts.nodes, shape.MaxNodes)
	}
	return opts, nil
}

func run(ctx context.Context, client kubernetes.Interface, cluster, count int) error {
	nodes := newNodes(cluster, count)
	if err := registerNodes(ctx, client, nodes); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(dropManagedFields))
	pods, err := newPods(client, factory, nodes, newPool(shape.PodAddresses(cluster)))
	if err != nil {
		return err
	}
	services, err := newServices(client, factory, newPool(shape.LoadBalancerAddresses(cluster)))
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)

	// Addresses that are in use, from before a restart, are not given out again.
	if err := pods.adopt(); err != nil {
		return err
	}
	if err := services.adopt(); err != nil {
		return err
	}
	slog.Info("playing the nodes", "cluster", cluster, "nodes", count)

	var running sync.WaitGroup
	running.Go(func() { pods.queue.work(ctx, pods.reconcile) })
	running.Go(func() { services.queue.work(ctx, services.reconcile) })
	running.Wait()
	return nil
}

// untilAccepted repeats a call until the API server takes it: it may still be starting.
func untilAccepted(ctx context.Context, doing string, call func(ctx context.Context) error) error {
	const every = 250 * time.Millisecond
	err := wait.PollUntilContextCancel(ctx, every, true, func(ctx context.Context) (bool, error) {
		err := call(ctx)
		if err != nil {
			slog.Warn("not accepted yet", "doing", doing, "error", err)
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
