package kubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAStartedPodRunsAndIsReadyAtItsAddress(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Generation: 4},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "reviews"}, {Name: "istio-proxy"}}},
		Status: corev1.PodStatus{QOSClass: corev1.PodQOSBurstable, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: corev1.ConditionFalse},
		}},
	}
	status := runningStatus(pod, "10.1.0.1", "10.1.1.1", metav1.Now())

	if status.Phase != corev1.PodRunning || status.PodIP != "10.1.1.1" || status.HostIP != "10.1.0.1" {
		t.Errorf("phase %s, address %s on %s", status.Phase, status.PodIP, status.HostIP)
	}
	if status.QOSClass != corev1.PodQOSBurstable || status.ObservedGeneration != 4 {
		t.Errorf("QoS class %q and observed generation %d", status.QOSClass, status.ObservedGeneration)
	}
	seen := map[corev1.PodConditionType]int{}
	for _, condition := range status.Conditions {
		seen[condition.Type]++
		if condition.Status != corev1.ConditionTrue {
			t.Errorf("condition %s is %s", condition.Type, condition.Status)
		}
	}
	for _, want := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		if seen[want] != 1 {
			t.Errorf("condition %s is there %d times", want, seen[want])
		}
	}
	for _, container := range status.ContainerStatuses {
		if container.State.Running == nil || !container.Ready {
			t.Errorf("container %s does not run: %+v", container.Name, container.State)
		}
	}
	if len(status.ContainerStatuses) != 2 {
		t.Errorf("%d containers have a status, want 2", len(status.ContainerStatuses))
	}
}

func TestInitContainersHaveEndedUnlessTheyAreSidecars(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{
		{Name: "istio-init"},
		{Name: "istio-proxy", RestartPolicy: &always},
	}}}
	statuses := runningStatus(pod, "10.1.0.1", "10.1.1.1", metav1.Now()).InitContainerStatuses
	if len(statuses) != 2 || statuses[0].State.Terminated == nil || statuses[1].State.Running == nil {
		t.Errorf("want one that ended and one that runs, got %+v", statuses)
	}
}
