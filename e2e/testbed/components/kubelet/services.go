package kubelet

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	// hostnameAnnotation on a Service gives its load balancer this hostname in place of an address.
	hostnameAnnotation = "testbed.ferromesh.io/load-balancer-hostname"
	// loadBalancerAnnotation on a Service, with the value pending, keeps its load balancer from coming.
	loadBalancerAnnotation = "testbed.ferromesh.io/load-balancer"
	pending                = "pending"
)

// services gives Services of type LoadBalancer their address.
type services struct {
	client    kubernetes.Interface
	lister    corelisters.ServiceLister
	addresses *pool
	queue     queue
}

func newServices(client kubernetes.Interface, factory informers.SharedInformerFactory, addresses *pool) (*services, error) {
	informer := factory.Core().V1().Services()
	queue, err := follow(informer.Informer())
	if err != nil {
		return nil, fmt.Errorf("following the Services: %w", err)
	}
	return &services{client: client, lister: informer.Lister(), addresses: addresses, queue: queue}, nil
}

// adopt notes the addresses that load balancers have from before this process started.
func (s *services) adopt() error {
	all, err := s.lister.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing the Services: %w", err)
	}
	for _, service := range all {
		for _, ingress := range service.Status.LoadBalancer.Ingress {
			if address, err := netip.ParseAddr(ingress.IP); err == nil {
				s.addresses.hold(cache.MetaObjectToName(service).String(), address)
			}
		}
	}
	return nil
}

func (s *services) reconcile(ctx context.Context, name cache.ObjectName) error {
	service, err := s.lister.Services(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		s.addresses.release(name.String())
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the Service: %w", err)
	}
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer {
		s.addresses.release(name.String())
		return nil
	}
	if service.Spec.LoadBalancerClass != nil {
		return nil // somebody else's
	}
	ingress, err := s.ingress(service, name.String())
	if err != nil {
		return fmt.Errorf("giving the load balancer an address: %w", err)
	}
	if equality.Semantic.DeepEqual(ingress, service.Status.LoadBalancer.Ingress) {
		return nil
	}
	changed := service.DeepCopy()
	changed.Status.LoadBalancer.Ingress = ingress
	_, err = s.client.CoreV1().Services(name.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the status of the Service: %w", err)
	}
	return nil
}

// ingress is where the load balancer should be reached. Addresses that it has stay: a test may have
// written them.
func (s *services) ingress(service *corev1.Service, owner string) ([]corev1.LoadBalancerIngress, error) {
	if service.Annotations[loadBalancerAnnotation] == pending {
		s.addresses.release(owner)
		return nil, nil
	}
	if hostname := service.Annotations[hostnameAnnotation]; hostname != "" {
		s.addresses.release(owner)
		return []corev1.LoadBalancerIngress{{Hostname: hostname}}, nil
	}
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		if ingress.IP != "" {
			return service.Status.LoadBalancer.Ingress, nil
		}
	}
	address, err := s.addresses.take(owner)
	if err != nil {
		return nil, err
	}
	mode := corev1.LoadBalancerIPModeVIP
	return []corev1.LoadBalancerIngress{{IP: address.String(), IPMode: &mode}}, nil
}
