package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// maxLabel is the longest DNS label; longer pod names are cut.
	maxLabel = 63
	// maxHostname is the longest name that the kernel takes.
	maxHostname = 64
)

// hostname is what the pod sees as its host name; empty for host-network pods,
// which see the node's.
func (b *Builder) hostname(pod *corev1.Pod) (string, error) {
	if pod.Spec.HostNetwork {
		return "", nil
	}
	if override := pod.Spec.HostnameOverride; override != nil {
		return *override, nil
	}
	short := shortHostname(pod)
	if !value(pod.Spec.SetHostnameAsFQDN) {
		return short, nil
	}
	fqdn := b.fqdn(pod, short)
	if fqdn == "" {
		return short, nil
	}
	if len(fqdn) > maxHostname {
		return "", fmt.Errorf("failed to construct FQDN from pod hostname and cluster domain, FQDN %s is too long (%d characters is the max, %d characters requested)",
			fqdn, maxHostname, len(fqdn))
	}
	return fqdn, nil
}

// shortHostname is spec.hostname or the pod's name, cut to a DNS label that
// does not end in a separator.
func shortHostname(pod *corev1.Pod) string {
	if pod.Spec.Hostname != "" {
		return pod.Spec.Hostname
	}
	name := pod.Name
	if len(name) > maxLabel {
		name = strings.TrimRight(name[:maxLabel], "-.")
	}
	return name
}

// fqdn is the pod's name in its headless service; empty without a subdomain, or
// where spec.hostnameOverride took the name out of the cluster domain.
func (b *Builder) fqdn(pod *corev1.Pod, short string) string {
	if pod.Spec.Subdomain == "" || pod.Spec.HostnameOverride != nil {
		return ""
	}
	name := short + "." + pod.Spec.Subdomain + "." + pod.Namespace + ".svc"
	if b.cfg.ClusterDomain != "" {
		name += "." + b.cfg.ClusterDomain
	}
	return name
}
