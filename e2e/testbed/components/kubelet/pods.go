package kubelet

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// pods takes every Pod through its life: to a Node, to running and ready, and away when deleted. A
// Pod that runs is left alone, so that a test may write any status it likes.
type pods struct {
	client    kubernetes.Interface
	lister    corelisters.PodLister
	nodes     []*corev1.Node
	placement placement
	addresses *pool
	queue     queue
}

func newPods(client kubernetes.Interface, factory informers.SharedInformerFactory, nodes []*corev1.Node, addresses *pool) (*pods, error) {
	informer := factory.Core().V1().Pods()
	queue, err := follow(informer.Informer())
	if err != nil {
		return nil, fmt.Errorf("following the Pods: %w", err)
	}
	return &pods{client: client, lister: informer.Lister(), nodes: nodes, addresses: addresses, queue: queue}, nil
}

// adopt notes the addresses that Pods have from before this process started.
func (p *pods) adopt() error {
	all, err := p.lister.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing the Pods: %w", err)
	}
	for _, pod := range all {
		if address, err := netip.ParseAddr(pod.Status.PodIP); err == nil && !pod.Spec.HostNetwork {
			p.addresses.hold(cache.MetaObjectToName(pod).String(), address)
		}
	}
	return nil
}

func (p *pods) reconcile(ctx context.Context, name cache.ObjectName) error {
	pod, err := p.lister.Pods(name.Namespace).Get(name.Name)
	switch {
	case apierrors.IsNotFound(err):
		p.addresses.release(name.String())
		return nil
	case err != nil:
		return fmt.Errorf("reading the Pod: %w", err)
	case pod.DeletionTimestamp != nil:
		return p.remove(ctx, pod, name)
	case pod.Status.Phase != corev1.PodPending:
		return nil
	case pod.Spec.NodeName == "":
		return p.bind(ctx, pod)
	default:
		return p.start(ctx, pod, name)
	}
}

// remove ends a Pod that is being deleted, as a kubelet does once its containers have stopped.
// Finalizers hold it back for as long as they are there.
func (p *pods) remove(ctx context.Context, pod *corev1.Pod, name cache.ObjectName) error {
	now := int64(0)
	if pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == now {
		return nil // done already; finalizers hold it
	}
	err := p.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now,
		Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
	})
	// A conflict is a Pod of the same name that has taken its place.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("removing the Pod: %w", err)
	}
	// The next Pod of this name, if any, starts with an address of its own.
	p.addresses.release(name.String())
	return nil
}

func (p *pods) bind(ctx context.Context, pod *corev1.Pod) error {
	if len(pod.Spec.SchedulingGates) > 0 {
		return nil
	}
	node, err := p.placement.choose(pod, p.nodes)
	if err != nil {
		return err
	}
	err = p.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node.Name},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("binding the Pod to %s: %w", node.Name, err)
	}
	return nil
}

func (p *pods) start(ctx context.Context, pod *corev1.Pod, name cache.ObjectName) error {
	node := p.node(pod.Spec.NodeName)
	if node == nil {
		return nil // bound by hand to a Node that is not ours to play
	}
	hostAddress := node.Status.Addresses[0].Address
	podAddress := hostAddress
	if !pod.Spec.HostNetwork {
		address, err := p.addresses.take(name.String())
		if err != nil {
			return fmt.Errorf("giving the Pod an address: %w", err)
		}
		podAddress = address.String()
	}
	started := pod.DeepCopy()
	started.Status = runningStatus(pod, hostAddress, podAddress, metav1.NewTime(time.Now()))
	_, err := p.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, started, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the status of the Pod: %w", err)
	}
	return nil
}

func (p *pods) node(name string) *corev1.Node {
	for _, node := range p.nodes {
		if node.Name == name {
			return node
		}
	}
	return nil
}
