package runtime

import "time"

// Pod is all that a runtime says about one pod at one moment. It is replaced
// whole by each look and never edited in place, so it may be shared.
type Pod struct {
	UID       string
	Namespace string
	Name      string
	// Sandboxes are sorted newest first (by Attempt, then CreatedAt).
	Sandboxes []Sandbox
	// Containers are sorted by name, and newest first within a name.
	Containers []Container
}

// Sandbox is one pod sandbox as the runtime last reported it.
type Sandbox struct {
	ID        string
	Attempt   uint32
	Ready     bool
	CreatedAt time.Time
	// IPs are empty for host-network pods (the CRI says so) and while the
	// network is not up. The first is the primary one.
	IPs []string
	// NoAddress is true when the runtime told of a network of the sandbox's own
	// that has no address: it did not come up, or is lost.
	NoAddress bool
	// HostNetwork is true when the sandbox shares the node's network namespace.
	HostNetwork    bool
	RuntimeHandler string
	Labels         map[string]string
	Annotations    map[string]string
}

// ContainerState is the CRI state of a container.
type ContainerState string

// The states of the CRI.
const (
	ContainerCreated ContainerState = "created"
	ContainerRunning ContainerState = "running"
	ContainerExited  ContainerState = "exited"
	ContainerUnknown ContainerState = "unknown"
)

// Container is one container as the runtime last reported it.
type Container struct {
	ID        string
	SandboxID string
	Name      string
	Attempt   uint32
	State     ContainerState
	CreatedAt time.Time
	// StartedAt and FinishedAt are zero until they happened.
	StartedAt  time.Time
	FinishedAt time.Time
	ExitCode   int32
	// Signal is the signal that ended the container where the runtime tells it.
	Signal int32
	// Reason is the runtime's one-word reason, such as "OOMKilled", "Completed"
	// or "Error". It may be empty.
	Reason string
	// Message is the termination message: what the container wrote to its
	// terminationMessagePath, or the tail of its log where the policy says so.
	Message string
	// Image is what was asked for; ImageID identifies what runs.
	Image   string
	ImageID string
	LogPath string
	// User is who the first process runs as, nil where the runtime does not tell.
	User *ContainerUser `json:",omitempty"`
	// RecursiveReadOnly are the paths in the container whose mounts are read-only
	// with all that is mounted below them.
	RecursiveReadOnly []string `json:",omitempty"`
	// StopSignal such as "SIGUSR1" is what ends the container; empty where the
	// runtime does not tell.
	StopSignal string `json:",omitempty"`
	// RestartCount, Hash and the others that must survive an agent restart are
	// read from the stock labels and annotations (see labels.go).
	Labels      map[string]string
	Annotations map[string]string
}

// ContainerUser is the identity of a container's first process.
type ContainerUser struct {
	UID, GID           int64
	SupplementalGroups []int64
}

// Hint says that something may have changed; the reader looks for itself.
// An empty UID means: look at every pod (events may have been lost).
type Hint struct {
	UID string
	// At is when it happened, by this machine's clock: what was read later
	// shows it already. Zero: not known.
	At time.Time
}

// Status is the runtime's view of its own health (CRI Status).
type Status struct {
	Name         string // e.g. "containerd"
	Version      string
	APIVersion   string // "v1" or "v1alpha2"
	RuntimeReady bool
	NetworkReady bool
	// Reason and Message explain the first condition that is not ready.
	Reason  string
	Message string
	// Runtime and Network are the two conditions as the runtime last reported
	// them. They stay as they are while it does not answer, when RuntimeReady is
	// false all the same.
	Runtime Condition
	Network Condition
	// ReadyAt is when the runtime last said that it is ready, by this machine's
	// clock, filled in by who asks over and over (runtime/observe); zero: never.
	ReadyAt time.Time
	// Handlers are the runtime handlers, sorted by name; "" is the default one.
	Handlers []Handler
	// Features is what the runtime can do; nil: it does not tell.
	Features *Features
}

// Condition is one condition of a runtime: RuntimeReady or NetworkReady.
type Condition struct {
	// Known is false until the runtime answered once. A condition that an answer
	// leaves out is known, and not ready.
	Known   bool
	Ready   bool
	Reason  string
	Message string
}

// Handler is one runtime handler, which a RuntimeClass may name.
type Handler struct {
	Name                    string
	RecursiveReadOnlyMounts bool
	UserNamespaces          bool
}

// Features is what a runtime can do beyond what every runtime can.
type Features struct {
	SupplementalGroupsPolicy  bool
	UserNamespacesHostNetwork bool
	MountOptions              bool
}

// NewestSandbox returns the sandbox with the highest attempt.
func (p Pod) NewestSandbox() (Sandbox, bool) {
	if len(p.Sandboxes) == 0 {
		return Sandbox{}, false
	}
	return p.Sandboxes[0], true
}

// NewestContainer returns the newest container of that name.
func (p Pod) NewestContainer(name string) (Container, bool) {
	for _, c := range p.Containers {
		if c.Name == name {
			return c, true
		}
	}
	return Container{}, false
}

// Empty says that the runtime holds nothing of this pod.
func (p Pod) Empty() bool { return len(p.Sandboxes) == 0 && len(p.Containers) == 0 }
