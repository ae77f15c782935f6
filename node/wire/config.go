package wire

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"nodekit.dev/node"
	"nodekit.dev/node/admission"
	"nodekit.dev/node/podspec"
	"nodekit.dev/probe"
	"nodekit.dev/probe/checks"
	"nodekit.dev/resources/cgroups"
	"nodekit.dev/resources/userns"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/cri"
	"nodekit.dev/runtime/images"
	"nodekit.dev/runtime/logs"
	"nodekit.dev/runtime/observe"
	"nodekit.dev/volume"
	"nodekit.dev/volume/csi"
	"nodekit.dev/volume/selinux"
	"nodekit.dev/volume/stats"
)

// Config is what a whole agent is made from: one value per part, and the few
// facts that several parts share, which New copies into them.
type Config struct {
	// NodeName is the node's name. Required.
	NodeName string
	// NodeIPs are the node's addresses, primary first, one per family, when the
	// agent starts. Later ones are those of the Node object, where somebody keeps
	// it (in a cluster), else of Node.HostIPs.
	NodeIPs []string
	// RootDir holds the agent's files; default /var/lib/kubelet.
	RootDir string
	// PodLogsDir holds the logs of containers; default /var/log/pods.
	PodLogsDir string
	// Host says what the agent does to the machine beyond its pods.
	Host Host

	Node    node.Config
	CRI     cri.Config
	Observe observe.Config
	Images  images.Config
	Logs    logs.Config
	Spec    podspec.Config
	Cgroups cgroups.Config
	Volume  volume.Config
	// SELinux says which volumes are mounted with the label of their pod, where the
	// host has SELinux: Host, where it is zero, is read from the machine, and what
	// an earlier agent recorded comes from the volumes.
	SELinux selinux.Config
	// SizeLimits ends pods whose emptyDirs hold more than their sizeLimit, as far as
	// VolumeStats has them measured.
	SizeLimits bool
	// CSI says how volumes of CSI drivers are mounted.
	CSI csi.Config
	// VolumeStats says how volumes are measured; Period 0: they are not.
	VolumeStats stats.Config
	// Probe says how probes are made, Checks what the stock checks do: those of
	// Probe.Checks are added to them. Its gates are those of Spec, too.
	Probe  probe.Config
	Checks checks.Config
	// Users are the node's user IDs that pods get ranges of (hostUsers: false).
	Users userns.Config
	// Admission says how pods are let in by ports, labels and taints.
	Admission admission.Config
	// LocalObjects is a folder of ConfigMaps and Secrets for static pods, see
	// objects.Folder; in an agent that stands alone they are for all pods. Empty:
	// none.
	LocalObjects string

	// PodCIDR is handed to the runtime, for its network: the addresses of the pods
	// of a node without a cluster (podCIDR). In a cluster the Node object has
	// them, and this stays empty.
	PodCIDR string

	// NodeObserver is told what happens to pods, for metrics. The other parts
	// take their Observers in the values above.
	NodeObserver node.Observer

	// Log takes the log lines of all parts; nil: none.
	Log *slog.Logger
}

// Host lists what an agent does to its host beyond the pods themselves. All of
// it is off in a library and on in cmd/kubelet. What concerns the whole process
// belongs to its program alone: cmd/kubelet/app sets the oom_score_adj, and
// nothing below cmd touches umask, resource limits, signals or the working
// directory.
type Host struct {
	// LogLinksDir gets a link per container to its log, named
	// POD_NAMESPACE_CONTAINER-ID.log; cmd/kubelet uses /var/log/containers.
	// Empty: no links.
	LogLinksDir string
	// Hosts gives each pod an /etc/hosts of its own.
	Hosts bool
	// PodCgroups makes the cgroup of each pod with its limits. Off: the runtime
	// makes it, without limits.
	PodCgroups bool
	// PluginRegistry looks for plugins, CSI drivers for one, that put a socket into
	// plugins_registry in the root directory. Off: the program registers them with
	// its own calls, or has none.
	PluginRegistry bool
	// IPTables keeps the chains on the host that other programs look for, see
	// package iptables.
	IPTables bool
	// ResolvConf is read for pods that get the node's DNS. Empty: the runtime
	// decides.
	ResolvConf string
}

// Default has everything but NodeName, NodeIPs and the CRI endpoint.
func Default() Config {
	return Config{
		RootDir:     "/var/lib/kubelet",
		PodLogsDir:  "/var/log/pods",
		Node:        node.DefaultConfig(),
		CRI:         cri.Config{Endpoint: "unix:///run/containerd/containerd.sock"},
		Observe:     observe.DefaultConfig(),
		Images:      images.DefaultConfig(),
		Logs:        logs.DefaultConfig(),
		Spec:        podspec.Default(),
		Cgroups:     cgroups.Default(),
		VolumeStats: stats.Default(),
		SELinux:     selinux.Config{OneUser: true, AllVolumes: true},
		SizeLimits:  true,
	}
}

// Complete copies what parts share into each of them, fills in facts about the
// machine, and checks the result. New calls it; calling it twice is fine.
func (c Config) Complete() (Config, error) {
	if err := c.validate(); err != nil {
		return c, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Node.RootDir, c.Spec.RootDir, c.Volume.RootDir, c.CSI.RootDir = c.RootDir, c.RootDir, c.RootDir, c.RootDir
	c.CSI.NodeName, c.CSI.VolumeCondition = c.NodeName, c.VolumeStats.Conditions
	c.Node.Rules.HostIPs = c.NodeIPs
	c.Spec.NodeName, c.Spec.NodeIPs, c.Spec.PodLogsDir = c.NodeName, c.NodeIPs, c.PodLogsDir
	c.Spec.ManageHosts = c.Host.Hosts
	c.Users.PodsDir = filepath.Join(c.RootDir, "pods")
	c.Spec.RestartRules, c.Spec.RestartAllContainers = c.Node.Rules.RestartRules, c.Node.Rules.RestartAllContainers
	c.Spec.ProbeH2C, c.Spec.ProbeGRPCTLS = c.Checks.H2C, c.Checks.GRPCTLS
	c.Admission.NodeName = c.NodeName
	c.Cgroups.Names, c.Cgroups.CPUQuota = c.Spec.Cgroups, c.Spec.CPUQuota
	c.CRI.Log, c.Observe.Log, c.Images.Log, c.Logs.Log = c.Log, c.Log, c.Log, c.Log
	return c.aboutMachine()
}

// Around ties the agent to its Node object: the object is looked at again when
// the runtime's health changed, and pods have the addresses that it tells.
func (c Config) Around(this *ThisNode) Config {
	c.Node.HostIPs = this.hostIPs(c.Node.HostIPs)
	told := c.Observe.Trace.Health
	c.Observe.Trace.Health = func(s runtime.Status) {
		this.Kick()
		if told != nil {
			told(s)
		}
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	if c.NodeName == "" {
		errs = append(errs, errors.New("NodeName: must not be empty"))
	}
	for _, dir := range []struct{ field, path string }{{"RootDir", c.RootDir}, {"PodLogsDir", c.PodLogsDir}} {
		if !filepath.IsAbs(dir.path) {
			errs = append(errs, fmt.Errorf("%s: %q must be an absolute path", dir.field, dir.path))
		}
	}
	if c.LocalObjects != "" && !filepath.IsAbs(c.LocalObjects) {
		errs = append(errs, fmt.Errorf("LocalObjects: %q must be an absolute path", c.LocalObjects))
	}
	return errors.Join(errs...)
}
