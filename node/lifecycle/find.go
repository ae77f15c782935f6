package lifecycle

import corev1 "k8s.io/api/core/v1"

// FindContainer finds a container of a pod's spec by name, of whichever kind;
// nil: there is none. An ephemeral one is a copy.
func FindContainer(pod *corev1.Pod, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if c := corev1.Container(pod.Spec.EphemeralContainers[i].EphemeralContainerCommon); c.Name == name {
			return &c
		}
	}
	return nil
}
