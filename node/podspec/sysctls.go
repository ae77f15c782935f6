package podspec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// sysctls are the pod's kernel parameters by dotted name: the node's defaults,
// and over them its own, of which Check has refused those that it may not set.
func (b *Builder) sysctls(pod *corev1.Pod) map[string]string {
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(b.cfg.DefaultPodSysctls)) {
		if dotted := dotted(name); !shared(pod, sysctlNamespace(dotted)) {
			out[dotted] = b.cfg.DefaultPodSysctls[name]
		}
	}
	if sc := pod.Spec.SecurityContext; sc != nil {
		for _, s := range sc.Sysctls {
			out[dotted(s.Name)] = s.Value
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// dotted turns "net/ipv4/conf/eth0.1/forwarding" into the dotted spelling, in
// which a dot that is part of a name is written as a slash.
func dotted(name string) string {
	separator := strings.IndexAny(name, "./")
	if separator < 0 || name[separator] == '.' {
		return name
	}
	return strings.Map(func(r rune) rune {
		switch r {
		case '.':
			return '/'
		case '/':
			return '.'
		}
		return r
	}, name)
}

// kernelNamespace is one that holds sysctls, in the stock kubelet's spelling.
type kernelNamespace string

const (
	netNamespace  kernelNamespace = "Net"
	ipcNamespace  kernelNamespace = "IPC"
	utsNamespace  kernelNamespace = "UTS"
	userNamespace kernelNamespace = "User"
)

// sysctlNamespace is the namespace of a parameter; empty: it belongs to the
// whole node.
func sysctlNamespace(name string) kernelNamespace {
	switch {
	case strings.HasPrefix(name, "net."):
		return netNamespace
	case strings.HasPrefix(name, "kernel.shm"), strings.HasPrefix(name, "kernel.msg"),
		name == "kernel.sem", strings.HasPrefix(name, "fs.mqueue."):
		return ipcNamespace
	case name == "kernel.domainname":
		return utsNamespace
	case strings.HasPrefix(name, "user."):
		return userNamespace
	}
	return ""
}

// shared says that the pod has the node's namespace of that kind.
func shared(pod *corev1.Pod, ns kernelNamespace) bool {
	switch ns {
	case netNamespace, utsNamespace: // a pod has the node's host name with its network
		return pod.Spec.HostNetwork
	case ipcNamespace:
		return pod.Spec.HostIPC
	case userNamespace:
		return !ownUsers(pod)
	}
	return true
}

// safeSince is the kernel since when any pod may set a parameter: each has its
// own, and no pod can hurt another or the node with it.
func safeSince(name string) (kernel string, safe bool) {
	switch name {
	case "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies",
		"net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start":
		return "", true
	case "net.ipv4.ip_local_reserved_ports":
		return "3.16", true
	case "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes":
		return "4.5", true
	case "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_notsent_lowat":
		return "4.6", true
	case "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_slow_start_after_idle":
		return "4.15", true
	}
	return "", false
}

// sysctlRefusal says why the pod may not set that parameter; empty: it may.
func (b *Builder) sysctlRefusal(pod *corev1.Pod, name string) string {
	name = dotted(name)
	if !b.sysctlAllowed(name) {
		return fmt.Sprintf("forbidden sysctl: %q not allowlisted", name)
	}
	ns := sysctlNamespace(name)
	if ns == utsNamespace || !shared(pod, ns) { // as the stock kubelet, which lets the UTS namespace pass
		return ""
	}
	return fmt.Sprintf("forbidden sysctl: %q not allowed with host %s enabled", name, ns)
}

func (b *Builder) sysctlAllowed(name string) bool {
	if since, safe := safeSince(name); safe && kernelAtLeast(b.cfg.Kernel, since) {
		return true
	}
	return slices.ContainsFunc(b.cfg.AllowedUnsafeSysctls, func(pattern string) bool {
		prefix, isPrefix := strings.CutSuffix(dotted(pattern), "*")
		return name == prefix || isPrefix && strings.HasPrefix(name, prefix)
	})
}

// kernelAtLeast compares the first two numbers of kernel releases. An unknown
// kernel is a new one.
func kernelAtLeast(have, want string) bool {
	if have == "" || want == "" {
		return true
	}
	var major, minor, wantMajor, wantMinor int
	if _, err := fmt.Sscanf(have, "%d.%d", &major, &minor); err != nil {
		return false
	}
	if _, err := fmt.Sscanf(want, "%d.%d", &wantMajor, &wantMinor); err != nil {
		return false
	}
	return major > wantMajor || major == wantMajor && minor >= wantMinor
}

// validSysctlPattern refuses to allow what would reach beyond the pod.
func validSysctlPattern(pattern string) error {
	prefix, _ := strings.CutSuffix(dotted(pattern), "*")
	if prefix == "" || strings.Contains(prefix, "*") {
		return fmt.Errorf("sysctl pattern %q: must be a name, or a prefix that ends in \"*\"", pattern)
	}
	if sysctlNamespace(prefix) == "" {
		return fmt.Errorf("sysctl pattern %q: is in no namespace of a pod", pattern)
	}
	return nil
}
