package podspec

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// sysctls are the pod's kernel parameters by dotted name. Check has refused
// those that the pod may not set.
func sysctls(pod *corev1.Pod) map[string]string {
	sc := pod.Spec.SecurityContext
	if sc == nil || len(sc.Sysctls) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, s := range sc.Sysctls {
		out[dotted(s.Name)] = s.Value
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

// safeSysctl says whether any pod may set it: it is namespaced, and no pod can
// hurt another or the node with it.
func safeSysctl(name string) bool {
	switch name {
	case "kernel.shm_rmid_forced",
		"net.ipv4.ip_local_port_range",
		"net.ipv4.tcp_syncookies",
		"net.ipv4.ping_group_range",
		"net.ipv4.ip_unprivileged_port_start",
		"net.ipv4.ip_local_reserved_ports",
		"net.ipv4.tcp_keepalive_time",
		"net.ipv4.tcp_fin_timeout",
		"net.ipv4.tcp_keepalive_intvl",
		"net.ipv4.tcp_keepalive_probes",
		"net.ipv4.tcp_rmem",
		"net.ipv4.tcp_wmem":
		return true
	}
	return false
}

// sysctlNamespace is the kernel namespace that holds a parameter, "net" or
// "ipc"; empty: it belongs to the whole node.
func sysctlNamespace(name string) string {
	switch {
	case strings.HasPrefix(name, "net."):
		return "net"
	case strings.HasPrefix(name, "kernel.shm"), strings.HasPrefix(name, "kernel.msg"),
		name == "kernel.sem", strings.HasPrefix(name, "fs.mqueue."):
		return "ipc"
	}
	return ""
}

// sysctlRefusal says why the pod may not set that parameter; empty: it may.
func (b *Builder) sysctlRefusal(pod *corev1.Pod, name string) string {
	name = dotted(name)
	allowed := safeSysctl(name) || slices.ContainsFunc(b.cfg.AllowedUnsafeSysctls, func(pattern string) bool {
		prefix, isPrefix := strings.CutSuffix(dotted(pattern), "*")
		return name == prefix || isPrefix && strings.HasPrefix(name, prefix)
	})
	switch ns := sysctlNamespace(name); {
	case !allowed:
		return fmt.Sprintf("sysctl %q is not among the safe ones and not allowed on this node", name)
	case ns == "net" && pod.Spec.HostNetwork:
		return fmt.Sprintf("sysctl %q would change the node's network: not with hostNetwork", name)
	case ns == "ipc" && pod.Spec.HostIPC:
		return fmt.Sprintf("sysctl %q would change the node's IPC: not with hostIPC", name)
	}
	return ""
}

// validSysctlPattern refuses to allow what would reach beyond the pod.
func validSysctlPattern(pattern string) error {
	prefix, _ := strings.CutSuffix(dotted(pattern), "*")
	if prefix == "" || strings.Contains(prefix, "*") {
		return fmt.Errorf("sysctl pattern %q: must be a name, or a prefix that ends in \"*\"", pattern)
	}
	if sysctlNamespace(prefix) == "" {
		return fmt.Errorf("sysctl pattern %q: is not in the network or IPC namespace of a pod", pattern)
	}
	return nil
}
