package controllers

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
)

func namespaces(ctx context.Context, env *environment) (loop, error) {
	controller := namespace.NewNamespaceController(
		ctx,
		env.client,
		env.metadata,
		env.client.Discovery().ServerPreferredNamespacedResources,
		env.informers.Core().V1().Namespaces(),
		5*time.Minute, // resynchronisation, kube-controller-manager's default
		corev1.FinalizerKubernetes,
	)
	return func(ctx context.Context) { controller.Run(ctx, workers) }, nil
}

func garbageCollection(ctx context.Context, env *environment) (loop, error) {
	controller, err := garbagecollector.NewGarbageCollector(
		ctx,
		env.client,
		env.metadata,
		env.restMapper,
		garbagecollector.DefaultIgnoredResources(),
		env.anyInformers(),
		env.informersStarted,
	)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) {
		var both sync.WaitGroup
		both.Go(func() { controller.Run(ctx, workers, discoveryPeriod) })
		both.Go(func() { controller.Sync(ctx, env.client.Discovery(), discoveryPeriod) })
		both.Wait()
	}, nil
}
