package environment

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/podactor"
)

// names are what the environment of one container names, each once.
type names struct {
	configMaps []string
	secrets    []string
	files      []podactor.EnvFile
}

func namesOf(pod *corev1.Pod, container string) (n names) {
	env, from := environmentOf(pod, container)
	for _, f := range from {
		if f.ConfigMapRef != nil {
			add(&n.configMaps, f.ConfigMapRef.Name)
		}
		if f.SecretRef != nil {
			add(&n.secrets, f.SecretRef.Name)
		}
	}
	for _, v := range env {
		if v.ValueFrom == nil || v.Value != "" { // a value goes first
			continue
		}
		if ref := v.ValueFrom.ConfigMapKeyRef; ref != nil {
			add(&n.configMaps, ref.Name)
		}
		if ref := v.ValueFrom.SecretKeyRef; ref != nil {
			add(&n.secrets, ref.Name)
		}
		if ref := v.ValueFrom.FileKeyRef; ref != nil {
			add(&n.files, podactor.EnvFile{Volume: ref.VolumeName, Path: ref.Path})
		}
	}
	return n
}

func add[T comparable](list *[]T, item T) {
	if !slices.Contains(*list, item) {
		*list = append(*list, item)
	}
}

func environmentOf(pod *corev1.Pod, container string) ([]corev1.EnvVar, []corev1.EnvFromSource) {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == container {
				return list[i].Env, list[i].EnvFrom
			}
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if c := &pod.Spec.EphemeralContainers[i]; c.Name == container {
			return c.Env, c.EnvFrom
		}
	}
	return nil, nil
}
