// Package controllers runs those control loops of Kubernetes that a test cluster needs, each as
// Kubernetes has it. The whole kube-controller-manager also works, but it drags in volumes, cloud
// providers and container runtimes: a tenth of the build, for loops with nothing to do here.
package controllers

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"

	"k8s.io/klog/v2"
)

// constructor makes one control loop; the informers it asks for start only after all are made.
type constructor func(ctx context.Context, env *environment) (loop, error)

// loop runs until its context is done.
type loop func(ctx context.Context)

var constructors = map[string]constructor{
	"clusterrole-aggregation": clusterRoleAggregation,
	"daemonset":               daemonSets,
	"deployment":              deployments,
	"endpointslice":           endpointSlices,
	"garbage-collector":       garbageCollection,
	"namespace":               namespaces,
	"replicaset":              replicaSets,
	"root-ca-publisher":       rootCAPublisher,
	"serviceaccount":          serviceAccounts,
	"serviceaccount-token":    serviceAccountTokens,
	"statefulset":             statefulSets,
}

// options is the command line.
type options struct {
	kubeconfig        string
	serviceAccountKey string
	rootCA            string
}

// Main runs every control loop until ctx is done.
func Main(ctx context.Context, args []string) error {
	opts, err := parse(args)
	if err != nil {
		return err
	}
	env, err := newEnvironment(ctx, opts)
	if err != nil {
		return err
	}
	loops := make(map[string]loop, len(constructors))
	for name, construct := range constructors {
		loops[name], err = construct(ctx, env)
		if err != nil {
			return fmt.Errorf("making the %s controller: %w", name, err)
		}
	}
	env.startInformers(ctx)

	var running sync.WaitGroup
	for name, run := range loops {
		running.Go(func() {
			run(klog.NewContext(ctx, klog.LoggerWithName(klog.FromContext(ctx), name)))
		})
	}
	running.Wait()
	return nil
}

func parse(args []string) (options, error) {
	var opts options
	flags := flag.NewFlagSet("controllers", flag.ContinueOnError)
	flags.StringVar(&opts.kubeconfig, "kubeconfig", "", "credentials of a cluster administrator")
	flags.StringVar(&opts.serviceAccountKey, "service-account-private-key-file", "", "key that signs the tokens of token Secrets")
	flags.StringVar(&opts.rootCA, "root-ca-file", "", "CA of the API server, published in every namespace")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	for name, path := range map[string]string{
		"kubeconfig":                       opts.kubeconfig,
		"service-account-private-key-file": opts.serviceAccountKey,
		"root-ca-file":                     opts.rootCA,
	} {
		if _, err := os.Stat(path); err != nil {
			return options{}, fmt.Errorf("reading the file of --%s: %w", name, err)
		}
	}
	return opts, nil
}
