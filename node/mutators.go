package node

import (
	"log/slog"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime"
)

// SandboxMutator changes what the runtime is told of a pod's sandbox, after
// Specs has made it.
type SandboxMutator interface {
	// MutateSandbox changes cfg in place and must leave pod alone. It is pure
	// and quick, and called anew for each sandbox of the pod. An error keeps the
	// sandbox from being made; it is tried again.
	MutateSandbox(pod *corev1.Pod, cfg *runtime.SandboxConfig) error
}

// ContainerMutator changes what the runtime is told of a container, after Specs
// has made it. What it changes is no reason to start a container anew that
// runs: that depends on the pod's spec alone.
type ContainerMutator interface {
	// MutateContainer changes cfg in place and must leave pod alone. It is pure
	// and quick, and called anew for each start. An error keeps the container
	// from being made; it is tried again.
	MutateContainer(pod *corev1.Pod, cfg *runtime.ContainerConfig) error
}

// StatusMutator changes what is told of a pod's status: to sinks, in views, and
// so to the API server. Decisions about the pod never see it.
type StatusMutator interface {
	// MutateStatus returns the status to tell; it must not change what update
	// points to, nor block. Pod is nil for an orphan. After a panic the status
	// is told as it was.
	MutateStatus(update StatusUpdate) corev1.PodStatus
}

// SandboxMutatorFunc is a function as a [SandboxMutator].
type SandboxMutatorFunc func(pod *corev1.Pod, cfg *runtime.SandboxConfig) error

// MutateSandbox calls f.
func (f SandboxMutatorFunc) MutateSandbox(pod *corev1.Pod, cfg *runtime.SandboxConfig) error {
	return f(pod, cfg)
}

// ContainerMutatorFunc is a function as a [ContainerMutator].
type ContainerMutatorFunc func(pod *corev1.Pod, cfg *runtime.ContainerConfig) error

// MutateContainer calls f.
func (f ContainerMutatorFunc) MutateContainer(pod *corev1.Pod, cfg *runtime.ContainerConfig) error {
	return f(pod, cfg)
}

// StatusMutatorFunc is a function as a [StatusMutator].
type StatusMutatorFunc func(update StatusUpdate) corev1.PodStatus

// MutateStatus calls f.
func (f StatusMutatorFunc) MutateStatus(update StatusUpdate) corev1.PodStatus { return f(update) }

// specMutators are the two groups in order.
type specMutators struct {
	sandbox   []Ordered[SandboxMutator]
	container []Ordered[ContainerMutator]
}

// around puts the mutators behind specs.
func (m specMutators) around(specs Specs) Specs {
	if specs == nil || len(m.sandbox)+len(m.container) == 0 {
		return specs
	}
	return mutatedSpecs{specs, m}
}

type mutatedSpecs struct {
	Specs
	mutators specMutators
}

func (s mutatedSpecs) Sandbox(req podactor.SandboxSpecRequest) (runtime.SandboxConfig, error) {
	cfg, err := s.Specs.Sandbox(req)
	if err != nil {
		return cfg, err
	}
	for _, m := range s.mutators.sandbox {
		if err := named("sandbox mutator", m.Name, "MutateSandbox", func() error {
			return m.Value.MutateSandbox(req.Pod, &cfg)
		}); err != nil {
			return runtime.SandboxConfig{}, reasoned.New("FailedCreatePodSandBox", err)
		}
	}
	return cfg, nil
}

func (s mutatedSpecs) Container(req podactor.ContainerSpecRequest) (runtime.ContainerConfig, error) {
	cfg, err := s.Specs.Container(req)
	if err != nil {
		return cfg, err
	}
	for _, m := range s.mutators.container {
		if err := named("container mutator", m.Name, "MutateContainer", func() error {
			return m.Value.MutateContainer(req.Pod, &cfg)
		}); err != nil {
			return runtime.ContainerConfig{}, reasoned.New("CreateContainerConfigError", err)
		}
	}
	return cfg, nil
}

// mutateStatus runs the status mutators in order.
func mutateStatus(mutators []Ordered[StatusMutator], update StatusUpdate, log *slog.Logger) StatusUpdate {
	for _, m := range mutators {
		contain(log, "status mutator "+m.Name, func() { update.Status = m.Value.MutateStatus(update) })
	}
	return update
}
