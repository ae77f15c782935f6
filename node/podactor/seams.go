package podactor

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

// Engine makes and ends sandboxes and containers. The default is runtime/cri;
// anything that can run processes may stand in (examples/custom-engine).
//
// Every method may block for as long as its context lives, is called
// concurrently for different pods, and is idempotent: a call for something
// that is already so (stopped, removed) succeeds.
type Engine interface {
	// RunSandbox creates and starts a sandbox.
	RunSandbox(ctx context.Context, req RunSandboxRequest) (RunSandboxResult, error)
	// StartContainer creates and starts one container. When it fails after the
	// container was created, the next look shows it in state created.
	StartContainer(ctx context.Context, req StartContainerRequest) (StartContainerResult, error)
	// StopContainer signals the container and kills it when Grace is over. It
	// returns when the container has stopped.
	StopContainer(ctx context.Context, req StopContainerRequest) error
	// StopSandbox kills what still runs in the sandbox and takes its network
	// away; it keeps the dead containers.
	StopSandbox(ctx context.Context, req StopSandboxRequest) error
	// Remove removes one dead container, or one stopped sandbox with its dead
	// containers.
	Remove(ctx context.Context, req RemoveRequest) error
}

// RunSandboxRequest asks for a sandbox.
type RunSandboxRequest struct{ Config runtime.SandboxConfig }

// RunSandboxResult tells the new sandbox's ID.
type RunSandboxResult struct{ SandboxID string }

// StartContainerRequest asks for a container in a sandbox that runs.
type StartContainerRequest struct {
	SandboxID string
	Sandbox   runtime.SandboxConfig
	Config    runtime.ContainerConfig
}

// StartContainerResult tells the new container's ID.
type StartContainerResult struct{ ContainerID string }

// StopContainerRequest asks a container to end.
type StopContainerRequest struct {
	ContainerID string
	Grace       time.Duration // 0: kill at once
}

// StopSandboxRequest names the sandbox to stop.
type StopSandboxRequest struct{ SandboxID string }

// RemoveRequest names one thing to remove: a container or a sandbox.
type RemoveRequest struct {
	ContainerID string
	SandboxID   string
	// Container is what the last look showed of the container, for who removes
	// what else belongs to it; empty with a SandboxID.
	Container runtime.Container
}

// Watcher reads the runtime. The default is runtime/observe.
type Watcher interface {
	// Look reads the present state of one pod from the runtime itself, never
	// from a cache. It may block; it is called concurrently.
	Look(ctx context.Context, req LookRequest) (LookResult, error)
	// List reads all pods once: at start, and to find orphans.
	List(ctx context.Context) ([]runtime.Pod, error)
	// Hints says which pods to look at again. The channel is the same on every
	// call and has one reader.
	Hints() <-chan runtime.Hint
	// Status is the runtime's health as last read, without blocking.
	Status() runtime.Status
}

// LookRequest names the pod to look at.
type LookRequest struct{ UID string }

// LookResult is what the runtime holds of that pod.
type LookResult struct{ Pod runtime.Pod }

// Puller makes images present. The default is runtime/images.
type Puller interface {
	// Pull returns when the image is there, or why it is not. Its errors may
	// answer Reason() string and RetryAfter() time.Duration. Called
	// concurrently, also for one image by many pods.
	Pull(ctx context.Context, req PullRequest) (PullResult, error)
}

// PullRequest asks for one container's image.
type PullRequest struct {
	Pod       *corev1.Pod
	Container string
	Image     string
	Policy    corev1.PullPolicy
	Sandbox   runtime.SandboxConfig
	// Tell hands out an event about the pull, and fills in the container. It
	// does not block; nil: nobody listens.
	Tell func(lifecycle.Event)
}

// PullResult names the image by what the runtime knows it by.
type PullResult struct {
	Ref string
	// User is the user that the image asks for, as a number or a name, for
	// runAsNonRoot; empty: root.
	User string
}

// Mounter mounts a pod's volumes. The default is package volume.
//
// Every method may block, is called concurrently, and is idempotent: what is
// mounted is read from the host, so that the call after a crash is the same
// call as the first.
type Mounter interface {
	// Mount makes one volume of the pod's spec usable on the host.
	Mount(ctx context.Context, req MountRequest) (MountResult, error)
	// Unmount undoes Mount for one volume, also when the spec is gone.
	Unmount(ctx context.Context, req UnmountRequest) error
	// Mounted lists the names of the pod's volumes that are mounted now.
	Mounted(ctx context.Context, uid string) ([]string, error)
	// ContainerMounts resolves a container's volumeMounts (subPath included) and
	// volumeDevices to host paths, just before the container is created.
	ContainerMounts(ctx context.Context, req ContainerMountsRequest) (ContainerMountsResult, error)
	// RemovePodDir removes the pod's directories, never through a mount.
	RemovePodDir(ctx context.Context, uid string) error
}

// MountRequest names one volume of a pod.
type MountRequest struct {
	Pod    *corev1.Pod
	Volume string
}

// MountResult tells where the volume is on the host.
type MountResult struct{ HostPath string }

// UnmountRequest names one volume by the pod's UID; Pod is nil when its spec is gone.
type UnmountRequest struct {
	UID    string
	Pod    *corev1.Pod
	Volume string
}

// ContainerMountsRequest names a container of a pod whose volumes are mounted.
type ContainerMountsRequest struct {
	Pod       *corev1.Pod
	Container string
	// PodIPs and HostIPs are the pod's and the node's addresses, and Environment
	// what else a subPathExpr may get its variables from.
	PodIPs      []string
	HostIPs     []string
	Environment EnvironmentResult
	// RuntimeHandler is who will make the mounts; empty: the default one.
	RuntimeHandler string
}

// ContainerMountsResult holds the mounts in the order of volumeMounts, and the
// devices in that of volumeDevices.
type ContainerMountsResult struct {
	Mounts  []runtime.Mount
	Devices []runtime.Device
}

// Allocator decides whether a pod fits and what it gets. The default admits
// all; package resources brings the real one.
type Allocator interface {
	// Admit allocates for the pod or says why not. The call for a pod that has
	// its allocation already returns the same again.
	Admit(ctx context.Context, req AdmitRequest) (lifecycle.Admission, error)
	// Release gives back what Admit allocated. Unknown UIDs are fine.
	Release(ctx context.Context, uid string) error
}

// AdmitRequest names the pod to admit.
type AdmitRequest struct {
	Pod *corev1.Pod
	// Static pods do not come from the API server.
	Static bool
}

// Cgroups makes and removes the cgroup of a pod. The default is resources/cgroups.
type Cgroups interface {
	// Ensure makes the pod's cgroup with its limits. Idempotent.
	Ensure(ctx context.Context, pod *corev1.Pod) error
	// Remove removes it with whatever is below it; unknown UIDs are fine.
	Remove(ctx context.Context, uid string) error
}

// Specs turns a pod into runtime configuration. The default is node/podspec.
// Its methods are pure and quick.
type Specs interface {
	Sandbox(req SandboxSpecRequest) (runtime.SandboxConfig, error)
	Container(req ContainerSpecRequest) (runtime.ContainerConfig, error)
	// Check refuses a pod that sets a field the agent does not act on.
	Check(pod *corev1.Pod) error
}

// SandboxSpecRequest is all that a sandbox's configuration depends on.
type SandboxSpecRequest struct {
	Pod     *corev1.Pod
	Attempt uint32
	// RuntimeHandler is that of the pod's RuntimeClass; empty: the default one.
	RuntimeHandler string
	// UserNamespace is set for pods with hostUsers: false.
	UserNamespace *runtime.UserNamespace
	// HostIPs are the node's addresses as they are known now.
	HostIPs []string
	// Tell hands out an event about the sandbox. It does not block; nil: nobody
	// listens.
	Tell func(lifecycle.Event)
}

// ContainerSpecRequest is all that a container's configuration depends on.
type ContainerSpecRequest struct {
	Pod       *corev1.Pod
	Container string
	Attempt   uint32
	Restarts  int32
	ImageRef  string
	Mounts    []runtime.Mount
	Devices   []runtime.Device
	PodIPs    []string
	// TerminationLog is the host file for the termination message; empty: none.
	TerminationLog string
	// RuntimeHandler and UserNamespace are those of the pod's sandbox.
	RuntimeHandler string
	UserNamespace  *runtime.UserNamespace
	// Environment is what the container's environment names and what exists of it.
	Environment EnvironmentResult
	// TargetID is the container whose processes an ephemeral container sees;
	// empty: its own alone.
	TargetID string
	// HostIPs are the node's addresses as they are known now; empty: not more
	// than was known when the agent started.
	HostIPs []string
	// ImageUser is the user the image asks for, for runAsNonRoot.
	ImageUser string
}

// HookRunner runs the postStart and preStop handlers of containers.
type HookRunner interface {
	// RunHandler runs one lifecycle handler and returns when it ended. It
	// blocks until ctx ends at the latest.
	RunHandler(ctx context.Context, req HandlerRequest) error
}

// HandlerRequest names one handler of one running container.
type HandlerRequest struct {
	Pod         *corev1.Pod
	Container   string
	ContainerID string
	Handler     *corev1.LifecycleHandler
	PodIPs      []string
}

// Prober checks containers again and again. The default is package probe.
//
// No method blocks; they are called concurrently for different pods.
type Prober interface {
	// Watch makes the probes of one run of a container from now on. It is called
	// again when anything of the request changes; a new run takes the place of
	// the one before. The result is what counts from now on: after a restart of
	// the agent, what is known from before. An error names the field that can not
	// be.
	Watch(req ProbeRequest) (ProbeResult, error)
	// Rest ends the checks of a container until the next Watch: its run ended,
	// is being stopped, or its pod ends. Nothing is said of it any more.
	Rest(req ProbeRequest)
	// Forget ends all there is of a pod. Unknown UIDs are fine.
	Forget(uid string)
	// Results are the prober's words. The channel is the same on every call and
	// has one reader; only the newest result of a container matters.
	Results() <-chan ProbeResult
}

// ProbeRequest names one run of a container and what its probes need.
type ProbeRequest struct {
	Pod *corev1.Pod
	Run lifecycle.ProbedRun
}

// ProbeResult is the prober's word on one container.
type ProbeResult struct {
	UID       string
	Container string
	Probe     lifecycle.Probe
}

// Hooks are the vendor's hooks, already put in order.
type Hooks interface {
	// Prepare runs before anything of the pod exists on the node, Started after
	// each container start, Stopping before the first container is stopped,
	// Cleanup after all of the pod is gone. All may block, all are idempotent:
	// each may run again for the same pod after a restart of the agent. When
	// Started fails it is tried again beside the pod, which goes on.
	Prepare(ctx context.Context, pod *corev1.Pod) error
	Started(ctx context.Context, pod *corev1.Pod, container, containerID string) error
	Stopping(ctx context.Context, pod *corev1.Pod) error
	Cleanup(ctx context.Context, pod *corev1.Pod) error
}

// StatusSink takes the pod's status whenever it changed. It must not block.
type StatusSink interface {
	PodStatus(StatusUpdate)
}

// StatusUpdate is one new status of one pod.
type StatusUpdate struct {
	UID       string
	Namespace string
	Name      string
	Pod       *corev1.Pod // nil for an orphan
	Static    bool
	Phase     lifecycle.Phase
	Status    corev1.PodStatus
	// Later says that the pod waits because an admitter said so, and Released that
	// nothing of it takes room on the node any more: no container, sandbox, mount
	// or cgroup is left.
	Later    bool
	Released bool
	// Informed says that the status was decided with knowledge of what the API
	// server has of the pod (lifecycle.Want.Prior).
	Informed bool
}

// EventSink takes events for users. It must not block.
type EventSink interface {
	PodEvent(PodEvent)
}

// PodEvent is one event about one pod.
type PodEvent struct {
	UID, Namespace, Name string
	Pod                  *corev1.Pod
	lifecycle.Event
}
