package podspec

import (
	"errors"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/resources"
	"nodekit.dev/runtime"
)

// Config is what a pod's configuration depends on besides the pod: facts about
// the node and settings of its operator. All of it is plain data but the
// functions, which are called on each use and must be quick.
type Config struct {
	// RootDir is the agent's state directory, absolute.
	RootDir string
	// PodLogsDir holds one log directory per pod, absolute.
	PodLogsDir string

	NodeName string
	// NodeIPs are the node's addresses, primary first, one per family, where a
	// request does not tell them as they are now.
	NodeIPs []string

	// ClusterDNS are the name servers of pods with dnsPolicy ClusterFirst;
	// empty: such pods get the host's.
	ClusterDNS    []string
	ClusterDomain string // such as "cluster.local"; empty: no cluster domain
	// HostDNS tells the host's resolver configuration (see ParseResolvConf).
	// Nil: the runtime decides what pods with the host's DNS get, or with LocalDNS
	// a resolver on the node itself, as the stock kubelet has it with an empty
	// resolvConf.
	HostDNS  func() (runtime.DNSConfig, error)
	LocalDNS bool

	Cgroups  resources.CgroupNames
	CPUQuota resources.CPUQuota
	// MachineMemory is the node's memory in bytes, for oom_score_adj.
	MachineMemory int64
	// Allocatable stands in for absent limits in resourceFieldRef.
	Allocatable corev1.ResourceList
	// HugepageSizes are the node's page sizes in the kernel's spelling ("2MB").
	// A container that asks for none of a size is held to zero of it.
	HugepageSizes []string

	// SeccompDefault confines containers that name no seccomp profile with the
	// runtime's own instead of leaving them unconfined.
	SeccompDefault bool
	// AppArmor and SELinux say what the host enforces. Without AppArmor, pods
	// that ask for a profile are refused; with SELinux, files that the agent
	// makes for a container are relabelled.
	AppArmor bool
	SELinux  bool
	// AllowedUnsafeSysctls are names, or prefixes that end in "*".
	AllowedUnsafeSysctls []string
	// DefaultPodSysctls (gate DefaultPodSysctls, Alpha) are set in every pod that
	// has the namespace that they are in; the pod's own go first.
	DefaultPodSysctls map[string]string
	// Kernel is the node's kernel release, such as "6.1.0-18-amd64". What it can
	// not keep apart for each pod is not among the safe sysctls. Empty: all that
	// a new kernel can.
	Kernel string
	// EnvFiles (gate EnvFiles, Beta, on) lets containers take variables from files.
	EnvFiles bool
	// StopSignals (gate ContainerStopSignals, Alpha) lets containers name the
	// signal that ends them.
	StopSignals bool
	// RestartRules (gate ContainerRestartRules, Beta, on) lets containers have a
	// restart policy and rules of their own, and RestartAllContainers (gate
	// RestartAllContainersOnContainerExits, Beta, on) rules that restart them all.
	RestartRules, RestartAllContainers bool
	// ProbeH2C (gate H2CContainerProbe, Alpha) lets HTTP probes name their
	// protocol, and ProbeGRPCTLS (gate GRPCContainerProbeTLS, Alpha) gRPC probes
	// their mode.
	ProbeH2C, ProbeGRPCTLS bool
	// EmptyDirModes (gate EmptyDirVolumeMode, Alpha) lets emptyDir volumes have a
	// mode, and FileUsers (gate AtomicWriteVolumeUserFields, Alpha) volumes that
	// objects fill name the owners of their files.
	EmptyDirModes, FileUsers bool
	// ExtraMaskedPaths are hidden from containers besides the stock list.
	ExtraMaskedPaths []string

	// Features tells what a runtime handler ("": the default one) can do beyond
	// the base of the CRI, as last known. Nil: nothing.
	Features func(handler string) RuntimeFeatures

	// ManageHosts makes containers mount the file that Builder.HostsFile
	// describes. Whoever sets it writes that file before containers start.
	ManageHosts bool
	// NodeHosts is the node's own /etc/hosts, for host-network pods with
	// hostAliases. Nil: such pods are refused.
	NodeHosts func() ([]byte, error)

	// ContainerHash tells one version of a container's spec from another.
	ContainerHash func(c *corev1.Container) string
}

// RuntimeFeatures are abilities that a runtime reports in its CRI status. What
// a runtime lacks is refused where it would confine less than was asked.
type RuntimeFeatures struct {
	RecursiveReadOnlyMounts  bool
	SupplementalGroupsPolicy bool
	UserNamespaces           bool
}

// Default is the stock kubelet's configuration. NodeName, NodeIPs,
// MachineMemory and ContainerHash have no default.
func Default() Config {
	return Config{
		RootDir:    "/var/lib/kubelet",
		PodLogsDir: "/var/log/pods",
		CPUQuota:   resources.DefaultCPUQuota(),
		EnvFiles:   true,

		RestartRules: true, RestartAllContainers: true,
	}
}

// Validate names everything that is wrong with the configuration.
func (c Config) Validate() error {
	var errs []error
	for name, dir := range map[string]string{"RootDir": c.RootDir, "PodLogsDir": c.PodLogsDir} {
		if !filepath.IsAbs(dir) {
			errs = append(errs, fmt.Errorf("%s %q: must be an absolute path", name, dir))
		}
	}
	if c.MachineMemory <= 0 {
		errs = append(errs, fmt.Errorf("MachineMemory %d: must be the node's memory in bytes", c.MachineMemory))
	}
	if c.ContainerHash == nil {
		errs = append(errs, errors.New("ContainerHash: must be set"))
	}
	errs = append(errs, c.Cgroups.Validate())
	for _, pattern := range c.AllowedUnsafeSysctls {
		if err := validSysctlPattern(pattern); err != nil {
			errs = append(errs, fmt.Errorf("AllowedUnsafeSysctls: %w", err))
		}
	}
	for name := range c.DefaultPodSysctls {
		if sysctlNamespace(dotted(name)) == "" {
			errs = append(errs, fmt.Errorf("DefaultPodSysctls: %q is not known to be in a namespace of a pod", name))
		}
	}
	return errors.Join(errs...)
}
