package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
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

func findContainer(pod *corev1.Pod, name string) (*corev1.Container, error) {
	if c := lifecycle.FindContainer(pod, name); c != nil {
		return c, nil
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
