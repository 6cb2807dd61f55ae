package controllers

import (
	"context"
	"time"

	"k8s.io/kubernetes/pkg/controller/endpointslice"
)

// maxEndpointsPerSlice is kube-controller-manager's default.
const maxEndpointsPerSlice = 100

func endpointSlices(ctx context.Context, env *environment) (loop, error) {
	controller := endpointslice.NewController(
		ctx,
		env.informers.Core().V1().Pods(),
		env.informers.Core().V1().Services(),
		env.informers.Core().V1().Nodes(),
		env.informers.Discovery().V1().EndpointSlices(),
		maxEndpointsPerSlice,
		env.client,
		time.Duration(0), // no batching of updates, kube-controller-manager's default
	)
	return func(ctx context.Context) { controller.Run(ctx, workers) }, nil
}
