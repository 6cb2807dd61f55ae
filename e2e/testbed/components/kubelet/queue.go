package kubelet

import (
	"context"
	"log/slog"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// workers is how many objects of a kind are looked at at a time.
const workers = 4

// queue holds the names of objects to look at, each at most once.
type queue struct {
	workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

// follow makes a queue of all objects that the informer sees added, changed or deleted.
func follow(informer cache.SharedIndexInformer) (queue, error) {
	q := queue{workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())}
	enqueue := func(object any) {
		name, err := cache.DeletionHandlingObjectToName(object)
		if err != nil {
			slog.Error("an object without a name", "error", err)
			return
		}
		q.Add(name)
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
		DeleteFunc: enqueue,
	})
	return q, err
}

// reconciler brings one object to where it should be; it is never called twice at once for one name.
type reconciler func(ctx context.Context, name cache.ObjectName) error

// work reconciles until ctx is done; what failed is tried again later.
func (q queue) work(ctx context.Context, reconcile reconciler) {
	stop := context.AfterFunc(ctx, q.ShutDown)
	defer stop()
	var running sync.WaitGroup
	for range workers {
		running.Go(func() { q.drain(ctx, reconcile) })
	}
	running.Wait()
}

func (q queue) drain(ctx context.Context, reconcile reconciler) {
	for {
		name, done := q.Get()
		if done {
			return
		}
		if err := reconcile(ctx, name); err != nil {
			slog.Warn("will try again", "object", name.String(), "error", err)
			q.AddRateLimited(name)
		} else {
			q.Forget(name)
		}
		q.Done(name)
	}
}

// dropManagedFields saves memory: nothing here reads them.
func dropManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}
