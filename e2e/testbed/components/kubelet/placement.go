package kubelet

import (
	"errors"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

var errNoNodeFits = errors.New("no Node has the labels that the Pod's node selector and affinity ask for")

// placement deals Pods out to the Nodes in turn.
type placement struct {
	dealt atomic.Uint64
}

// choose returns the next of those Nodes that the Pod's node selector and required node affinity
// allow (a DaemonSet's Pods name their Node that way). Resources and taints are not looked at.
func (p *placement) choose(pod *corev1.Pod, nodes []*corev1.Node) (*corev1.Node, error) {
	required := nodeaffinity.GetRequiredNodeAffinity(pod)
	var fitting []*corev1.Node
	for _, node := range nodes {
		fits, err := required.Match(node)
		if err != nil {
			return nil, fmt.Errorf("reading the node affinity of the Pod: %w", err)
		}
		if fits {
			fitting = append(fitting, node)
		}
	}
	if len(fitting) == 0 {
		return nil, errNoNodeFits
	}
	return fitting[(p.dealt.Add(1)-1)%uint64(len(fitting))], nil
}
