package controllers

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/controller-manager/pkg/informerfactory"
)

const (
	// resyncPeriod is kube-controller-manager's least.
	resyncPeriod = 12 * time.Hour
	// discoveryPeriod is how soon new kinds (CRDs) are garbage-collected. kube-controller-manager
	// takes 30 s; tests install CRDs and use them at once.
	discoveryPeriod = 5 * time.Second
)

// environment is what the control loops share.
type environment struct {
	client            kubernetes.Interface
	metadata          metadata.Interface
	informers         informers.SharedInformerFactory
	metadataInformers metadatainformer.SharedInformerFactory
	informersStarted  chan struct{}
	restMapper        *restmapper.DeferredDiscoveryRESTMapper
	serviceAccountKey any
	rootCA            []byte
}

func newEnvironment(ctx context.Context, opts options) (*environment, error) {
	config, err := clientcmd.BuildConfigFromFlags("", opts.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", opts.kubeconfig, err)
	}
	rest.AddUserAgent(config, "testbed-controllers")
	config.QPS = -1 // a test cluster has nobody to be fair to
	key, err := keyutil.PrivateKeyFromFile(opts.serviceAccountKey)
	if err != nil {
		return nil, fmt.Errorf("reading the service account key %s: %w", opts.serviceAccountKey, err)
	}
	rootCA, err := os.ReadFile(opts.rootCA)
	if err != nil {
		return nil, fmt.Errorf("reading the root CA: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a metadata client: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	go wait.UntilWithContext(ctx, func(context.Context) { mapper.Reset() }, discoveryPeriod)

	return &environment{
		client:            client,
		metadata:          metadataClient,
		informers:         informers.NewSharedInformerFactoryWithOptions(client, resyncPeriod, informers.WithTransform(dropManagedFields)),
		metadataInformers: metadatainformer.NewSharedInformerFactoryWithOptions(metadataClient, resyncPeriod, metadatainformer.WithTransform(dropManagedFields)),
		informersStarted:  make(chan struct{}),
		restMapper:        mapper,
		serviceAccountKey: key,
		rootCA:            rootCA,
	}, nil
}

// anyInformers gives typed informers where there are some and metadata informers for other kinds.
func (env *environment) anyInformers() informerfactory.InformerFactory {
	return informerfactory.NewInformerFactory(env.informers, env.metadataInformers)
}

func (env *environment) startInformers(ctx context.Context) {
	env.anyInformers().Start(ctx.Done())
	close(env.informersStarted)
}

// dropManagedFields saves memory: no control loop reads them.
func dropManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}
