package kubeletapi

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/runtime"
)

// loggedContainer is the ID of the container whose log is meant: the one that
// runs, else the last one that ended. The words are the stock kubelet's.
func loggedContainer(view node.PodView, name string, previous bool) (string, error) {
	status, found := statusOf(view.Status, name)
	if !found {
		return "", fmt.Errorf("container %q in pod %q is not available", name, view.Name)
	}
	last, state := status.LastTerminationState.Terminated, status.State
	id := ""
	switch {
	case previous:
		if last == nil || last.ContainerID == "" {
			return "", fmt.Errorf("previous terminated container %q in pod %q not found", name, view.Name)
		}
		id = last.ContainerID
	case state.Running != nil:
		id = status.ContainerID
	case state.Terminated != nil && state.Terminated.ContainerID != "":
		id = state.Terminated.ContainerID
	case last != nil && last.ContainerID != "": // the next one did not start
		id = last.ContainerID
	case state.Terminated != nil || last != nil:
		return "", fmt.Errorf("container %q in pod %q is terminated", name, view.Name)
	default:
		return "", fmt.Errorf("container %q in pod %q is waiting to start%s", name, view.Name, waitingFor(state.Waiting))
	}
	if _, bare, found := strings.Cut(id, "://"); found {
		return bare, nil
	}
	return id, nil
}

func statusOf(s corev1.PodStatus, name string) (corev1.ContainerStatus, bool) {
	for _, group := range [][]corev1.ContainerStatus{s.ContainerStatuses, s.InitContainerStatuses, s.EphemeralContainerStatuses} {
		if i := slices.IndexFunc(group, func(c corev1.ContainerStatus) bool { return c.Name == name }); i >= 0 {
			return group[i], true
		}
	}
	return corev1.ContainerStatus{}, false
}

func waitingFor(waiting *corev1.ContainerStateWaiting) string {
	switch {
	case waiting == nil:
		return " - no logs yet"
	case waiting.Reason == "ErrImagePull":
		return ": image can't be pulled"
	case waiting.Reason == "ImagePullBackOff":
		return ": trying and failing to pull image"
	}
	return ": " + waiting.Reason
}

// logPath is where the runtime says that it writes the container's log, and
// whether it still does.
func logPath(pod runtime.Pod, id string) (path string, runs bool, err error) {
	for _, c := range pod.Containers {
		if c.ID == id {
			if c.LogPath == "" {
				return "", false, fmt.Errorf("container %q in pod %q has no log", c.Name, pod.Name)
			}
			return c.LogPath, c.State == runtime.ContainerRunning, nil
		}
	}
	return "", false, fmt.Errorf("unable to retrieve container logs for %s: the runtime has removed it", id)
}
