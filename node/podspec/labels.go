package podspec

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/runtime"
)

// sandboxLabels are the pod's labels and those by which sandboxes are found;
// the latter win.
func sandboxLabels(pod *corev1.Pod) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, pod.Labels)
	maps.Copy(labels, identity(pod))
	return labels
}

func identity(pod *corev1.Pod) map[string]string {
	return map[string]string{
		runtime.LabelPodName:      pod.Name,
		runtime.LabelPodNamespace: pod.Namespace,
		runtime.LabelPodUID:       string(pod.UID),
	}
}

func containerLabels(pod *corev1.Pod, c *corev1.Container) map[string]string {
	labels := identity(pod)
	labels[runtime.LabelContainerName] = c.Name
	return labels
}

// containerAnnotations hold what an agent without memory needs to restart and
// to stop the container, also when its manifest is gone.
func (b *Builder) containerAnnotations(pod *corev1.Pod, c *corev1.Container, restarts int32) (map[string]string, error) {
	out := map[string]string{
		runtime.AnnotationContainerHash:            b.cfg.ContainerHash(c),
		runtime.AnnotationRestartCount:             strconv.Itoa(int(restarts)),
		runtime.AnnotationTerminationMessagePath:   c.TerminationMessagePath,
		runtime.AnnotationTerminationMessagePolicy: string(c.TerminationMessagePolicy),
	}
	setInt(out, runtime.AnnotationPodDeletionGracePeriod, pod.DeletionGracePeriodSeconds)
	setInt(out, runtime.AnnotationPodTerminationGracePeriod, pod.Spec.TerminationGracePeriodSeconds)
	if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
		if err := setJSON(out, runtime.AnnotationPreStopHandler, c.Lifecycle.PreStop); err != nil {
			return nil, err
		}
	}
	if len(c.Ports) > 0 {
		if err := setJSON(out, runtime.AnnotationContainerPorts, c.Ports); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func setInt(annotations map[string]string, key string, n *int64) {
	if n != nil {
		annotations[key] = strconv.FormatInt(*n, 10)
	}
}

func setJSON(annotations map[string]string, key string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("annotation %s: %w", key, err)
	}
	annotations[key] = string(text)
	return nil
}
