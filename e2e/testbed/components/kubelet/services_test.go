package kubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ferromesh/ferromesh/e2e/testbed/shape"
)

func loadBalancer(annotations map[string]string, current ...corev1.LoadBalancerIngress) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Annotations: annotations},
		Status:     corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: current}},
	}
}

func ingressOf(t *testing.T, service *corev1.Service) []corev1.LoadBalancerIngress {
	t.Helper()
	s := services{addresses: newPool(shape.LoadBalancerAddresses(2))}
	ingress, err := s.ingress(service, "istio-system/ingress")
	if err != nil {
		t.Fatal(err)
	}
	return ingress
}

func TestALoadBalancerGetsAnAddressOfItsCluster(t *testing.T) {
	got := ingressOf(t, loadBalancer(nil))
	if len(got) != 1 || got[0].IP != "172.16.2.1" || got[0].Hostname != "" {
		t.Errorf("got %+v, want the address 172.16.2.1", got)
	}
}

func TestALoadBalancerGetsTheHostnameOfItsAnnotation(t *testing.T) {
	hostname := map[string]string{hostnameAnnotation: "lb.example.com"}
	got := ingressOf(t, loadBalancer(hostname, corev1.LoadBalancerIngress{IP: "172.16.2.9"}))
	if len(got) != 1 || got[0].Hostname != "lb.example.com" || got[0].IP != "" {
		t.Errorf("got %+v, want the hostname lb.example.com", got)
	}
}

func TestAPendingLoadBalancerGetsNothing(t *testing.T) {
	waits := map[string]string{loadBalancerAnnotation: pending}
	if got := ingressOf(t, loadBalancer(waits, corev1.LoadBalancerIngress{IP: "172.16.2.9"})); len(got) != 0 {
		t.Errorf("got %+v, want nothing", got)
	}
}

func TestAnAddressThatATestWroteStays(t *testing.T) {
	got := ingressOf(t, loadBalancer(nil, corev1.LoadBalancerIngress{IP: "192.0.2.1"}))
	if len(got) != 1 || got[0].IP != "192.0.2.1" {
		t.Errorf("got %+v, want the address 192.0.2.1", got)
	}
}

func TestAHostnameWhoseAnnotationIsGoneMakesRoomForAnAddress(t *testing.T) {
	got := ingressOf(t, loadBalancer(nil, corev1.LoadBalancerIngress{Hostname: "lb.example.com"}))
	if len(got) != 1 || got[0].IP != "172.16.2.1" {
		t.Errorf("got %+v, want the address 172.16.2.1", got)
	}
}
