package agent

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ready wants a running pod with all containers ready.
func ready(p corev1.Pod) error {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && p.Status.Phase == corev1.PodRunning {
			return nil
		}
	}
	return fmt.Errorf("%s is %s and not ready", p.UID, p.Status.Phase)
}

// phase wants a pod in that phase.
func phase(want corev1.PodPhase) condition {
	return func(p corev1.Pod) error {
		if p.Status.Phase != want {
			return fmt.Errorf("%s is %q, not %q", p.UID, p.Status.Phase, want)
		}
		return nil
	}
}

// running wants a container that runs, ready or not.
func running(container string) condition {
	return func(p corev1.Pod) error {
		c, found := statusOf(p, container)
		if !found || c.State.Running == nil {
			return fmt.Errorf("%s: container %s does not run: %+v", p.UID, container, c.State)
		}
		return nil
	}
}

// waiting wants a container that waits for that reason.
func waiting(container, reason string) condition {
	return func(p corev1.Pod) error {
		c, found := statusOf(p, container)
		if !found || c.State.Waiting == nil || c.State.Waiting.Reason != reason {
			return fmt.Errorf("%s: container %s does not wait with %s: %+v", p.UID, container, reason, c.State)
		}
		return nil
	}
}

// restarts wants a container that was started again so many times and, now,
// runs or has ended.
func restarts(container string, want int32) condition {
	return func(p corev1.Pod) error {
		c, _ := statusOf(p, container)
		if c.RestartCount != want {
			return fmt.Errorf("%s: container %s has %d restarts, not %d", p.UID, container, c.RestartCount, want)
		}
		return nil
	}
}

// all wants all of these.
func all(conditions ...condition) condition {
	return func(p corev1.Pod) error {
		for _, c := range conditions {
			if err := c(p); err != nil {
				return err
			}
		}
		return nil
	}
}

// statusOf finds the status of a container of any kind.
func statusOf(p corev1.Pod, container string) (corev1.ContainerStatus, bool) {
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, c := range list {
			if c.Name == container {
				return c, true
			}
		}
	}
	return corev1.ContainerStatus{}, false
}

// bareID is the container's ID as the runtime knows it.
func bareID(c corev1.ContainerStatus) string {
	return strings.TrimPrefix(c.ContainerID, "containerd://")
}
