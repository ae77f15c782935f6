package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/podactor"
)

// Builder is a podactor.Specs. It keeps nothing but its configuration and is
// safe for concurrent use.
type Builder struct {
	cfg Config
}

var _ podactor.Specs = (*Builder)(nil)

// New checks the configuration.
func New(cfg Config) (*Builder, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("podspec: %w", err)
	}
	return &Builder{cfg: cfg}, nil
}

// findContainer finds a container by name. An ephemeral one is a copy.
func findContainer(pod *corev1.Pod, name string) (*corev1.Container, error) {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i], nil
			}
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if c := corev1.Container(pod.Spec.EphemeralContainers[i].EphemeralContainerCommon); c.Name == name {
			return &c, nil
		}
	}
	return nil, fmt.Errorf("pod %s/%s has no container %q", pod.Namespace, pod.Name, name)
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
