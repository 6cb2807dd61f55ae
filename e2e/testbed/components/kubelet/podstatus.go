package kubelet

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// runningStatus is the status that a kubelet reports of a Pod all of whose containers run.
func runningStatus(pod *corev1.Pod, hostAddress, podAddress string, now metav1.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	status.Phase = corev1.PodRunning
	status.ObservedGeneration = pod.Generation
	status.HostIP, status.HostIPs = hostAddress, []corev1.HostIP{{IP: hostAddress}}
	status.PodIP, status.PodIPs = podAddress, []corev1.PodIP{{IP: podAddress}}
	status.StartTime = &now
	for _, condition := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady,
	} {
		status.Conditions = withTrue(status.Conditions, condition, now)
	}
	status.InitContainerStatuses = nil
	for _, container := range pod.Spec.InitContainers {
		state := running(now)
		if container.RestartPolicy == nil || *container.RestartPolicy != corev1.ContainerRestartPolicyAlways {
			state = completed(now)
		}
		status.InitContainerStatuses = append(status.InitContainerStatuses, containerStatus(pod, container, state))
	}
	status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, containerStatus(pod, container, running(now)))
	}
	return status
}

func withTrue(conditions []corev1.PodCondition, kind corev1.PodConditionType, now metav1.Time) []corev1.PodCondition {
	others := slices.DeleteFunc(conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	return append(others, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
}

func containerStatus(pod *corev1.Pod, container corev1.Container, state corev1.ContainerState) corev1.ContainerStatus {
	started := state.Running != nil
	return corev1.ContainerStatus{
		Name:        container.Name,
		Image:       container.Image,
		ImageID:     container.Image,
		ContainerID: fmt.Sprintf("testbed://%s/%s", pod.UID, container.Name),
		Ready:       true,
		Started:     &started,
		State:       state,
	}
}

func running(now metav1.Time) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
}

func completed(now metav1.Time) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason: "Completed", StartedAt: now, FinishedAt: now,
	}}
}
