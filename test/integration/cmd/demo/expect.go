package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"nodekit.dev/test/integration/testbed"
)

// expectsAnnotation says how a sample pod should end up: Running (ready, which
// is the default), Succeeded or CrashLoopBackOff.
const expectsAnnotation = "nodekit.dev/demo-expects"

// expectation is how one pod should end up.
type expectation struct{ namespace, name, state string }

// readManifests finds out what the sample manifests should lead to.
func readManifests(folder string) ([]expectation, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var wanted []expectation
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var pod corev1.Pod
		if err := yaml.UnmarshalStrict(text, &pod); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		e := expectation{namespace: pod.Namespace, name: pod.Name, state: pod.Annotations[expectsAnnotation]}
		if e.state == "" {
			e.state = "Running"
		}
		wanted = append(wanted, e)
	}
	if len(wanted) == 0 {
		return nil, fmt.Errorf("no manifests in %s", folder)
	}
	return wanted, nil
}

// compare names every pod that is not as it should be (yet).
func compare(wanted []expectation, pods []corev1.Pod) error {
	var errs []error
	for _, want := range wanted {
		pod, found := findPod(pods, want.namespace, want.name)
		if !found {
			errs = append(errs, fmt.Errorf("pod %s: should be %s, but the agent does not know it", want.name, want.state))
			continue
		}
		if got := stateOf(pod); got != want.state {
			errs = append(errs, fmt.Errorf("pod %s: should be %s, is %s%s", want.name, want.state, got, why(pod)))
		}
	}
	return errors.Join(errs...)
}

// findPod finds a static pod by the name in its manifest.
func findPod(pods []corev1.Pod, namespace, name string) (corev1.Pod, bool) {
	for _, pod := range pods {
		if pod.Namespace == namespace && pod.Name == name+"-"+testbed.NodeName {
			return pod, true
		}
	}
	return corev1.Pod{}, false
}

// stateOf is a pod's state in one word, for people: the phase, or what keeps
// it from being ready.
func stateOf(pod corev1.Pod) string {
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return string(pod.Status.Phase)
	}
	for i, c := range pod.Status.InitContainerStatuses {
		if reason := waitingReason(c); reason != "" {
			return "Init:" + reason
		}
		if c.State.Terminated == nil && (c.Started == nil || !*c.Started) {
			return fmt.Sprintf("Init:%d/%d", i, len(pod.Status.InitContainerStatuses))
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if reason := waitingReason(c); reason != "" {
			return reason
		}
	}
	if pod.Status.Phase == corev1.PodRunning && !isReady(pod) {
		return "NotReady"
	}
	if pod.Status.Phase == "" {
		return string(corev1.PodPending)
	}
	return string(pod.Status.Phase)
}

func waitingReason(c corev1.ContainerStatus) string {
	if c.State.Waiting == nil {
		return ""
	}
	return c.State.Waiting.Reason
}

func isReady(pod corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// why collects the messages that explain a pod's state.
func why(pod corev1.Pod) string {
	var parts []string
	if pod.Status.Message != "" {
		parts = append(parts, pod.Status.Message)
	}
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if c.State.Waiting != nil && c.State.Waiting.Message != "" {
			parts = append(parts, fmt.Sprintf("[%s: %s]", c.Name, c.State.Waiting.Message))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, " ")
}
