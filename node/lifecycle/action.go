package lifecycle

import (
	"strings"
	"time"
)

// Key names the one thing that an action works on. At most one action per key
// is in flight; actions of different keys overlap.
type Key string

// The keys that occur once per pod.
const (
	KeyAdmit    Key = "admit"
	KeyHooks    Key = "hooks"
	KeyCgroup   Key = "cgroup"
	KeySandbox  Key = "sandbox"
	KeyVolumes  Key = "volumes" // unmount of all that is left
	KeyDirs     Key = "dirs"
	keyImage        = "image/"
	keyVolume       = "volume/"
	keyCont         = "container/"
	keyPostHook     = "poststart/"
)

// KeyImage is the key of a container's image pull.
func KeyImage(container string) Key { return Key(keyImage + container) }

// KeyVolume is the key of one volume.
func KeyVolume(volume string) Key { return Key(keyVolume + volume) }

// KeyContainer is the key of one container name: start, stop and remove.
func KeyContainer(container string) Key { return Key(keyCont + container) }

// KeyPostStart is the key of a container's postStart hook.
func KeyPostStart(container string) Key { return Key(keyPostHook + container) }

// Object is the part of the key behind its kind: a container or volume name.
func (k Key) Object() string {
	_, name, _ := strings.Cut(string(k), "/")
	return name
}

// Kind says what an action does.
type Kind string

// The actions. Every one is idempotent: the first call and the call after a
// crash are the same call.
const (
	// Admit asks the admitters and the allocator. Before anything else.
	Admit Kind = "Admit"
	// RunHooksPrepare, RunHooksStopping and RunHooksCleanup call the vendor's
	// hooks: before anything of the pod exists, before its containers are
	// stopped, and after all of it is gone. Hooks see Started as a side call
	// of StartContainer.
	RunHooksPrepare  Kind = "RunHooksPrepare"
	RunHooksStopping Kind = "RunHooksStopping"
	RunHooksCleanup  Kind = "RunHooksCleanup"
	// EnsureCgroup and RemoveCgroup work on the pod's cgroup.
	EnsureCgroup Kind = "EnsureCgroup"
	RemoveCgroup Kind = "RemoveCgroup"
	// Mount mounts Action.Volume; Unmount unmounts it.
	Mount   Kind = "Mount"
	Unmount Kind = "Unmount"
	// Pull makes the image of Action.Container present.
	Pull Kind = "Pull"
	// RunSandbox makes a sandbox with Action.Attempt; RemoveSandbox stops and
	// removes Action.SandboxID with whatever is in it; StopSandbox stops it and
	// keeps its dead containers.
	RunSandbox    Kind = "RunSandbox"
	StopSandbox   Kind = "StopSandbox"
	RemoveSandbox Kind = "RemoveSandbox"
	// StartContainer creates and starts Action.Container with Action.Attempt in
	// Action.SandboxID.
	StartContainer Kind = "StartContainer"
	// StopContainer runs the preStop hook and stops Action.ContainerID, all
	// within Action.Grace.
	StopContainer Kind = "StopContainer"
	// RemoveContainer removes the dead or never started Action.ContainerID.
	RemoveContainer Kind = "RemoveContainer"
	// RunPostStart runs the postStart hook of Action.ContainerID.
	RunPostStart Kind = "RunPostStart"
	// RemovePodDir removes the pod's directories, never through a mount.
	RemovePodDir Kind = "RemovePodDir"
)

// Action is one thing to do. Its fields beyond Kind and Key are set as Kind says.
type Action struct {
	Kind        Kind
	Key         Key
	Container   string        `json:",omitempty"`
	ContainerID string        `json:",omitempty"`
	SandboxID   string        `json:",omitempty"`
	Volume      string        `json:",omitempty"`
	Attempt     uint32        `json:",omitempty"` // of the sandbox or container to create
	Restarts    int32         `json:",omitempty"` // restart count of the container to create
	Image       string        `json:",omitempty"`
	Grace       time.Duration `json:",omitempty"`
	// SkipPreStop is set where the hook must not run: the container is killed
	// for a reason that leaves no time, or the hook's time is over.
	SkipPreStop bool `json:",omitempty"`
	// Reason and Message say why, for logs and events.
	Reason  string `json:",omitempty"`
	Message string `json:",omitempty"`
}
