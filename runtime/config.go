package runtime

// SandboxConfig is what a pod sandbox should be. Equal inputs of node/podspec
// give equal configs; nothing here is read from the host.
type SandboxConfig struct {
	Name      string
	Namespace string
	UID       string
	Attempt   uint32
	// RuntimeHandler is the handler of the pod's RuntimeClass; empty: default.
	RuntimeHandler string
	Hostname       string
	// LogDirectory is where the runtime puts container logs, absolute.
	LogDirectory string
	DNS          DNSConfig
	PortMappings []PortMapping
	Labels       map[string]string
	Annotations  map[string]string
	// CgroupParent in the form of the cgroup driver: a path for cgroupfs, a
	// slice name for systemd.
	CgroupParent string
	Sysctls      map[string]string
	Security     SandboxSecurity
	// Overhead is the pod overhead, Resources the pod total without it
	// (k/k#108441). Nil: not set.
	Overhead  *Resources
	Resources *Resources
}

// DNSConfig is written to the sandbox's resolv.conf. All empty: the runtime's default.
type DNSConfig struct {
	Servers  []string
	Searches []string
	Options  []string
}

// PortMapping maps a host port to a container port.
type PortMapping struct {
	Protocol      string // "TCP", "UDP" or "SCTP"
	ContainerPort int32
	HostPort      int32
	HostIP        string
}

// NamespaceMode is the CRI namespace mode.
type NamespaceMode string

// The modes of the CRI. For PID, NamespacePod means one PID namespace shared
// by the pod, NamespaceContainer one per container.
const (
	NamespacePod       NamespaceMode = "pod"
	NamespaceContainer NamespaceMode = "container"
	NamespaceNode      NamespaceMode = "node"
	NamespaceTarget    NamespaceMode = "target"
)

// Namespaces are the modes of the namespaces that the CRI knows.
type Namespaces struct {
	Network  NamespaceMode
	PID      NamespaceMode
	IPC      NamespaceMode
	TargetID string
	// User is the user namespace of the pod's own; nil: the node's.
	User *UserNamespace
}

// UserNamespace maps the users and groups of a pod to those of the node.
type UserNamespace struct {
	UIDs []IDMapping
	GIDs []IDMapping
}

// IDMapping maps Length IDs from ContainerID on to those from HostID on.
type IDMapping struct{ HostID, ContainerID, Length uint32 }

// SandboxSecurity is the security context of the sandbox itself.
type SandboxSecurity struct {
	Namespaces               Namespaces
	SELinux                  *SELinuxOptions
	RunAsUser                *int64
	RunAsGroup               *int64
	ReadonlyRootfs           bool
	SupplementalGroups       []int64
	SupplementalGroupsPolicy string // "" (merge), "Merge" or "Strict"
	Privileged               bool
	Seccomp                  *Profile
	AppArmor                 *Profile
}

// SELinuxOptions are passed to the runtime as they are.
type SELinuxOptions struct{ User, Role, Type, Level string }

// ProfileType is how a seccomp or AppArmor profile is named.
type ProfileType string

// The profile types of the CRI.
const (
	ProfileRuntimeDefault ProfileType = "RuntimeDefault"
	ProfileUnconfined     ProfileType = "Unconfined"
	ProfileLocalhost      ProfileType = "Localhost"
)

// Profile names a seccomp or AppArmor profile. LocalhostRef is a path (seccomp)
// or a profile name (AppArmor), for ProfileLocalhost only.
type Profile struct {
	Type         ProfileType
	LocalhostRef string
}

// ContainerConfig is what a container should be.
type ContainerConfig struct {
	Name       string
	Attempt    uint32
	Image      Image
	Command    []string
	Args       []string
	WorkingDir string
	Env        []EnvVar
	Mounts     []Mount
	Devices    []Device
	Labels     map[string]string
	// Annotations carry what must survive an agent restart (labels.go).
	Annotations map[string]string
	// LogPath is relative to the sandbox's LogDirectory.
	LogPath   string
	Stdin     bool
	StdinOnce bool
	TTY       bool
	Resources Resources
	Security  ContainerSecurity
	// StopSignal such as "SIGUSR1"; empty: the image's own.
	StopSignal string
}

// Image names the image that a container runs: Ref is what the puller
// returned, Requested is what the pod's spec says.
type Image struct {
	Ref            string
	Requested      string
	RuntimeHandler string
}

// EnvVar is one environment variable, already resolved.
type EnvVar struct{ Name, Value string }

// Propagation is a mount's propagation mode.
type Propagation string

// The propagation modes of the CRI.
const (
	PropagationPrivate         Propagation = "private"
	PropagationHostToContainer Propagation = "hostToContainer"
	PropagationBidirectional   Propagation = "bidirectional"
)

// Mount is one bind mount into a container, or the content of an image.
type Mount struct {
	HostPath string
	// Image is mounted, read-only, instead of HostPath, where it has a Ref.
	// ImageSubPath is the path in the image; empty: all of it.
	Image             Image
	ImageSubPath      string
	ContainerPath     string
	ReadOnly          bool
	RecursiveReadOnly bool
	SELinuxRelabel    bool
	Propagation       Propagation
}

// Device is a host device made visible to a container.
type Device struct{ HostPath, ContainerPath, Permissions string }

// Resources are Linux resource limits in kernel units.
type Resources struct {
	CPUPeriod   int64 // µs; 0: not set
	CPUQuota    int64 // µs per period; 0: not set, -1: unlimited
	CPUShares   int64 // cgroup v1 shares, 2 to 262144
	Memory      int64 // bytes; 0: unlimited
	MemorySwap  int64 // bytes, memory plus swap; 0: not set
	OOMScoreAdj int64
	CpusetCPUs  string
	CpusetMems  string
	// HugepageLimits by page size such as "2Mi" in the kernel's spelling "2MB".
	HugepageLimits map[string]uint64
	// Unified are raw cgroup v2 files, such as "memory.high".
	Unified map[string]string
}

// ContainerSecurity is the security context of a container.
type ContainerSecurity struct {
	AddCapabilities          []string
	DropCapabilities         []string
	Privileged               bool
	Namespaces               Namespaces
	SELinux                  *SELinuxOptions
	RunAsUser                *int64
	RunAsGroup               *int64
	RunAsUserName            string
	ReadonlyRootfs           bool
	SupplementalGroups       []int64
	SupplementalGroupsPolicy string
	NoNewPrivileges          bool
	MaskedPaths              []string
	ReadonlyPaths            []string
	Seccomp                  *Profile
	AppArmor                 *Profile
}
