package kubelet

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestPodsGoToTheNodesInTurn(t *testing.T) {
	nodes := newNodes(1, 2)
	var p placement
	for _, want := range []string{"node-1", "node-2", "node-1"} {
		node, err := p.choose(&corev1.Pod{}, nodes)
		if err != nil {
			t.Fatal(err)
		}
		if node.Name != want {
			t.Errorf("the Pod went to %s, want %s", node.Name, want)
		}
	}
}

func TestADaemonSetsPodGoesToTheNodeItNames(t *testing.T) {
	// As the DaemonSet controller writes it.
	pod := &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"node-2"}},
			}}},
		},
	}}}}
	node, err := new(placement).choose(pod, newNodes(1, 3))
	if err != nil {
		t.Fatal(err)
	}
	if node.Name != "node-2" {
		t.Errorf("the Pod went to %s, want node-2", node.Name)
	}
}

func TestANodeSelectorThatNothingMatchesLeavesThePodPending(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{"disk": "fast"}}}
	if node, err := new(placement).choose(pod, newNodes(1, 2)); !errors.Is(err, errNoNodeFits) {
		t.Errorf("got %v, %v; want %v", node, err, errNoNodeFits)
	}
}

func TestZonesOfTheRegionAreTakenInTurn(t *testing.T) {
	nodes := newNodes(3, 4)
	for i, want := range []string{"region-3-a", "region-3-b", "region-3-c", "region-3-a"} {
		if got := nodes[i].Labels[corev1.LabelTopologyZone]; got != want {
			t.Errorf("%s is in zone %s, want %s", nodes[i].Name, got, want)
		}
		if got := nodes[i].Labels[corev1.LabelTopologyRegion]; got != "region-3" {
			t.Errorf("%s is in region %s, want region-3", nodes[i].Name, got)
		}
	}
}
