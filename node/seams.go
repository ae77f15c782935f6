package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
)

// The seams of the pod machine, under the names that vendors use. Each is
// documented where it is declared, in node/podactor.

type (
	// Engine makes and ends sandboxes and containers.
	Engine = podactor.Engine
	// Watcher reads the runtime and tells which pods to look at.
	Watcher = podactor.Watcher
	// Puller makes images present.
	Puller = podactor.Puller
	// Mounter mounts the volumes of pods.
	Mounter = podactor.Mounter
	// Allocator decides whether a pod fits and what it gets.
	Allocator = podactor.Allocator
	// Cgroups makes and removes the cgroups of pods.
	Cgroups = podactor.Cgroups
	// Specs turns a pod into runtime configuration.
	Specs = podactor.Specs
	// HookRunner runs the postStart and preStop handlers of containers.
	HookRunner = podactor.HookRunner
	// Prober checks containers again and again.
	Prober = podactor.Prober
	// Environment fetches what the environment of a container names.
	Environment = podactor.Environment
	// RuntimeClasses knows the runtime's handler of each RuntimeClass.
	RuntimeClasses = podactor.RuntimeClasses
	// UserNamespaces gives pods users of their own.
	UserNamespaces = podactor.UserNamespaces
	// StatusSink takes the status of each pod whenever it changed.
	StatusSink = podactor.StatusSink
	// EventSink takes events for users.
	EventSink = podactor.EventSink
)

// What the seams are called with and answer, so that a vendor's part needs no
// other import.

type (
	// RunSandboxRequest asks an Engine for a sandbox.
	RunSandboxRequest = podactor.RunSandboxRequest
	// RunSandboxResult names the new sandbox.
	RunSandboxResult = podactor.RunSandboxResult
	// StartContainerRequest asks an Engine for a container that runs.
	StartContainerRequest = podactor.StartContainerRequest
	// StartContainerResult names the new container.
	StartContainerResult = podactor.StartContainerResult
	// StopContainerRequest asks an Engine to end a container.
	StopContainerRequest = podactor.StopContainerRequest
	// StopSandboxRequest names the sandbox to stop.
	StopSandboxRequest = podactor.StopSandboxRequest
	// RemoveRequest names the container or sandbox to remove.
	RemoveRequest = podactor.RemoveRequest
	// LookRequest names the pod that a Watcher looks at.
	LookRequest = podactor.LookRequest
	// LookResult is what the runtime holds of that pod.
	LookResult = podactor.LookResult
	// PullRequest asks a Puller for the image of one container.
	PullRequest = podactor.PullRequest
	// PullResult names the image as the runtime knows it.
	PullResult = podactor.PullResult
	// MountRequest names one volume of a pod.
	MountRequest = podactor.MountRequest
	// MountResult tells where the volume is.
	MountResult = podactor.MountResult
	// UnmountRequest names the volume to take away.
	UnmountRequest = podactor.UnmountRequest
	// ContainerMountsRequest names a container whose mounts are wanted.
	ContainerMountsRequest = podactor.ContainerMountsRequest
	// ContainerMountsResult holds them, in the order of volumeMounts.
	ContainerMountsResult = podactor.ContainerMountsResult
	// AdmitRequest names the pod to admit.
	AdmitRequest = podactor.AdmitRequest
	// SandboxSpecRequest is all that a sandbox's configuration depends on.
	SandboxSpecRequest = podactor.SandboxSpecRequest
	// ContainerSpecRequest is all that a container's configuration depends on.
	ContainerSpecRequest = podactor.ContainerSpecRequest
	// EnvironmentRequest names a container whose environment is wanted.
	EnvironmentRequest = podactor.EnvironmentRequest
	// EnvironmentResult is what there is of what it names.
	EnvironmentResult = podactor.EnvironmentResult
	// EnvFile names an environment file in a volume.
	EnvFile = podactor.EnvFile
	// RuntimeHandlerRequest names a RuntimeClass.
	RuntimeHandlerRequest = podactor.RuntimeHandlerRequest
	// RuntimeHandlerResult is its handler.
	RuntimeHandlerResult = podactor.RuntimeHandlerResult
	// UserNamespaceRequest names a pod that is to have users of its own.
	UserNamespaceRequest = podactor.UserNamespaceRequest
	// UserNamespaceResult is how its users are mapped.
	UserNamespaceResult = podactor.UserNamespaceResult
	// HandlerRequest names one lifecycle handler to run.
	HandlerRequest = podactor.HandlerRequest
	// ProbeRequest names one run of a container to probe.
	ProbeRequest = podactor.ProbeRequest
	// ProbeResult is a prober's word on one container.
	ProbeResult = podactor.ProbeResult
	// StatusUpdate is one new status of one pod.
	StatusUpdate = podactor.StatusUpdate
	// PodEvent is one event about one pod.
	PodEvent = podactor.PodEvent
	// Trace is what a pod's actor decided of late.
	Trace = podactor.Trace
)

// Source tells the node which pods to run. Sources run concurrently; each
// pod belongs to the source that named it.
type Source interface {
	// Name is unique in one agent, such as "file" or "http".
	Name() string
	// Run sends updates until ctx ends, then returns. Sends may block.
	Run(ctx context.Context, updates chan<- SourceUpdate) error
}

// SourceUpdate is the whole set of pods that a source wants now. A pod that is
// no longer in it is deleted. A pod that did not change may be the same pointer
// as before, which is cheapest; a pod must not be changed once sent.
type SourceUpdate struct {
	Source string
	Pods   []*corev1.Pod
	// Partial says that Pods holds only what is new or changed and Removed what
	// is gone, and that all else stays as it was: for sources that know, and
	// have thousands of pods. The first update of a source is never partial.
	Partial bool
	Removed []types.UID
	// Unclear says that the source may want more than it names: something of
	// its input could not be read, and never could before. While it is so, what
	// an earlier agent left of this source and nobody names is left alone.
	Unclear bool
}

// Mutator changes a pod before it is admitted, whatever its source.
type Mutator interface {
	// Mutate returns the pod to use; it must not change its argument. An error
	// rejects the pod with that message. It must not block.
	Mutate(pod *corev1.Pod) (*corev1.Pod, error)
}

// Admitter has a say in whether a pod starts: admit, reject, or retry later.
type Admitter interface {
	// Admit may block until ctx ends. It may be called again for a pod that it
	// admitted before: after a restart, or when it said later.
	Admit(ctx context.Context, req podactor.AdmitRequest) (lifecycle.Admission, error)
}

// Hook sees each pod's life from outside. Embed NoHook to implement only what
// is needed. All methods may block and are idempotent: each may run again for
// the same pod after a restart of the agent. An error holds the pod where it
// is until a retry succeeds, but for an error of Started, see there.
type Hook interface {
	// Prepare runs before anything of the pod exists on the node.
	Prepare(ctx context.Context, pod *corev1.Pod) error
	// Started runs after each start of a container, and for each container that
	// runs when the agent starts. What comes next of the pod waits for the first
	// call but not for its success: a container whose hook fails counts as
	// started, and the hook is tried again, with back-off, until it works, the
	// container is gone or the pod ends.
	Started(ctx context.Context, pod *corev1.Pod, container, containerID string) error
	// Stopping runs before the first container is stopped.
	Stopping(ctx context.Context, pod *corev1.Pod) error
	// Cleanup runs after all of the pod is gone.
	Cleanup(ctx context.Context, pod *corev1.Pod) error
}

// NoHook does nothing at every moment.
type NoHook struct{}

// Prepare does nothing.
func (NoHook) Prepare(context.Context, *corev1.Pod) error { return nil }

// Started does nothing.
func (NoHook) Started(context.Context, *corev1.Pod, string, string) error { return nil }

// Stopping does nothing.
func (NoHook) Stopping(context.Context, *corev1.Pod) error { return nil }

// Cleanup does nothing.
func (NoHook) Cleanup(context.Context, *corev1.Pod) error { return nil }

// Ordered is one member of an ordered group. It comes after the members that
// After names; members that are not ordered so run by name. A circle, a double
// name and an After that names nobody are errors of New.
type Ordered[T any] struct {
	Name  string
	After []string
	Value T
}
