package kubelet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/version"

	"github.com/ferromesh/ferromesh/e2e/testbed/shape"
)

// zones of a region are taken in turn by the nodes.
var zones = []string{"a", "b", "c"}

// newNodes makes the Nodes of a cluster: node-1, node-2 and so on. Every cluster is a region.
func newNodes(cluster, count int) []*corev1.Node {
	nodes := make([]*corev1.Node, 0, count)
	for number := 1; number <= count; number++ {
		nodes = append(nodes, newNode(cluster, number))
	}
	return nodes
}

func newNode(cluster, number int) *corev1.Node {
	name := shape.NodeName(number)
	region := fmt.Sprintf("region-%d", cluster)
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("10000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:       name,
				corev1.LabelOSStable:       "linux",
				corev1.LabelArchStable:     "amd64",
				corev1.LabelTopologyRegion: region,
				corev1.LabelTopologyZone:   region + "-" + zones[(number-1)%len(zones)],
			},
		},
		Status: corev1.NodeStatus{
			Capacity:    resources,
			Allocatable: resources,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: shape.NodeAddress(cluster, number).String()},
				{Type: corev1.NodeHostName, Address: name},
			},
			Conditions: []corev1.NodeCondition{{
				Type:    corev1.NodeReady,
				Status:  corev1.ConditionTrue,
				Reason:  "KubeletReady",
				Message: "the test bed plays this node",
			}},
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion:  version.Get().GitVersion,
				OperatingSystem: "linux",
				Architecture:    "amd64",
			},
		},
	}
}

func registerNodes(ctx context.Context, client kubernetes.Interface, nodes []*corev1.Node) error {
	for _, node := range nodes {
		err := untilAccepted(ctx, "registering the node "+node.Name, func(ctx context.Context) error {
			return registerNode(ctx, client, node)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func registerNode(ctx context.Context, client kubernetes.Interface, node *corev1.Node) error {
	nodes := client.CoreV1().Nodes()
	if _, err := nodes.Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating it: %w", err)
	}
	current, err := nodes.Get(ctx, node.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	// Admission taints every new Node as not ready, and the loop that takes the taint off is not run.
	current.Spec.Taints = nil
	if current, err = nodes.Update(ctx, current, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("taking its taints off: %w", err)
	}
	current.Status = node.Status
	for i := range current.Status.Conditions {
		current.Status.Conditions[i].LastHeartbeatTime = metav1.Now()
		current.Status.Conditions[i].LastTransitionTime = metav1.Now()
	}
	if _, err = nodes.UpdateStatus(ctx, current, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("writing its status: %w", err)
	}
	return nil
}
