package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
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
	short, err := shortHostname(pod)
	if err != nil || pod.Spec.HostnameOverride != nil {
		return short, err
	}
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

// shortHostname is the pod's name on the node, without its domain:
// spec.hostnameOverride, spec.hostname or the pod's name, cut so that it does
// not end in a separator.
func shortHostname(pod *corev1.Pod) (string, error) {
	switch {
	case pod.Spec.HostnameOverride != nil:
		return checkedName("HostnameOverride", *pod.Spec.HostnameOverride, "subdomain", validation.IsDNS1123Subdomain)
	case pod.Spec.Hostname != "":
		return checkedName("Hostname", pod.Spec.Hostname, "label", validation.IsDNS1123Label)
	}
	return cut(pod.Name), nil
}

func checkedName(field, name, kind string, check func(string) []string) (string, error) {
	if wrong := check(name); len(wrong) > 0 {
		return "", fmt.Errorf("pod %s %q is not a valid DNS %s: %s", field, name, kind, strings.Join(wrong, ";"))
	}
	return cut(name), nil
}

func cut(name string) string {
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
