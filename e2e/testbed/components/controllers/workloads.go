package controllers

import (
	"context"
	"time"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/statefulset"
)

// workers is kube-controller-manager's default for most loops.
const workers = 5

func deployments(ctx context.Context, env *environment) (loop, error) {
	controller, err := deployment.NewDeploymentController(
		ctx,
		env.informers.Apps().V1().Deployments(),
		env.informers.Apps().V1().ReplicaSets(),
		env.informers.Core().V1().Pods(),
		env.client,
	)
	return func(ctx context.Context) { controller.Run(ctx, workers) }, err
}

func replicaSets(ctx context.Context, env *environment) (loop, error) {
	controller := replicaset.NewReplicaSetController(
		ctx,
		env.informers.Apps().V1().ReplicaSets(),
		env.informers.Core().V1().Pods(),
		env.client,
		replicaset.BurstReplicas,
	)
	return func(ctx context.Context) { controller.Run(ctx, workers) }, nil
}

func daemonSets(ctx context.Context, env *environment) (loop, error) {
	controller, err := daemon.NewDaemonSetsController(
		ctx,
		env.informers.Apps().V1().DaemonSets(),
		env.informers.Apps().V1().ControllerRevisions(),
		env.informers.Core().V1().Pods(),
		env.informers.Core().V1().Nodes(),
		env.client,
		flowcontrol.NewBackOff(time.Second, 15*time.Minute),
	)
	return func(ctx context.Context) { controller.Run(ctx, workers) }, err
}

func statefulSets(ctx context.Context, env *environment) (loop, error) {
	controller := statefulset.NewStatefulSetController(
		ctx,
		env.informers.Core().V1().Pods(),
		env.informers.Apps().V1().StatefulSets(),
		env.informers.Core().V1().PersistentVolumeClaims(),
		env.informers.Apps().V1().ControllerRevisions(),
		env.client,
	)
	return func(ctx context.Context) { controller.Run(ctx, workers) }, nil
}
