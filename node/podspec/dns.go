package podspec

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

// The resolver's own limits; what goes beyond is dropped, as resolvers would.
const (
	maxNameservers = 3
	maxSearches    = 32
	maxSearchChars = 2048
	maxDomain      = 253 // of one search domain
)

// ndots makes names with fewer dots than a service's full name be looked up in
// the search domains first.
const ndots = "ndots:5"

// dns is the resolver configuration of the pod. The zero value leaves it to the
// runtime. HostIPs are the node's addresses.
func (b *Builder) dns(pod *corev1.Pod, hostIPs []string, warn func(reason, message string)) (runtime.DNSConfig, error) {
	var cfg runtime.DNSConfig
	if wanted := b.wantsClusterDNS(pod); wanted && len(b.cfg.ClusterDNS) == 0 {
		warn("MissingClusterDNS", fmt.Sprintf("pod: %q. kubelet does not have ClusterDNS IP configured and cannot create Pod using %q policy. Falling back to %q policy.",
			podName(pod), corev1.DNSClusterFirst, corev1.DNSDefault))
	}
	if policy := b.dnsPolicy(pod); policy != corev1.DNSNone {
		host, err := b.hostDNS()
		if err != nil {
			return cfg, err
		}
		switch {
		case policy == corev1.DNSClusterFirst:
			cfg = b.clusterDNS(pod, host)
		case b.cfg.HostDNS == nil && b.cfg.LocalDNS:
			cfg = localDNS(hostIPs)
		default:
			cfg = host
		}
	}
	return limitDNS(mergeDNS(cfg, pod.Spec.DNSConfig), warn), nil
}

// teller hands warnings out as events.
func teller(tell func(lifecycle.Event)) func(reason, message string) {
	return func(reason, message string) {
		if tell != nil {
			tell(lifecycle.Event{Type: lifecycle.EventWarning, Reason: reason, Message: message})
		}
	}
}

// dnsPolicy reduces the pod's policy to None, ClusterFirst or Default (the
// host's). ClusterFirst means the host's for host-network pods, which have to
// ask for the cluster's explicitly, and where the node knows no cluster DNS.
func (b *Builder) dnsPolicy(pod *corev1.Pod) corev1.DNSPolicy {
	switch {
	case pod.Spec.DNSPolicy == corev1.DNSNone:
		return corev1.DNSNone
	case b.wantsClusterDNS(pod) && len(b.cfg.ClusterDNS) > 0:
		return corev1.DNSClusterFirst
	}
	return corev1.DNSDefault
}

func (b *Builder) wantsClusterDNS(pod *corev1.Pod) bool {
	switch pod.Spec.DNSPolicy {
	case corev1.DNSNone, corev1.DNSDefault:
		return false
	case corev1.DNSClusterFirstWithHostNet:
		return true
	}
	return !pod.Spec.HostNetwork
}

func (b *Builder) hostDNS() (runtime.DNSConfig, error) {
	if b.cfg.HostDNS == nil {
		return runtime.DNSConfig{}, nil
	}
	cfg, err := b.cfg.HostDNS()
	if err != nil {
		return cfg, fmt.Errorf("host's DNS configuration: %w", err)
	}
	return cfg, nil
}

// localDNS asks the node itself, and searches nowhere.
func localDNS(hostIPs []string) runtime.DNSConfig {
	cfg := runtime.DNSConfig{Searches: []string{"."}}
	for _, ip := range hostIPs {
		server := "127.0.0.1"
		if strings.Contains(ip, ":") {
			server = "::1"
		}
		cfg.Servers = append(cfg.Servers, server)
	}
	if len(cfg.Servers) == 0 {
		cfg.Servers = []string{"127.0.0.1"}
	}
	return cfg
}

func (b *Builder) clusterDNS(pod *corev1.Pod, host runtime.DNSConfig) runtime.DNSConfig {
	cfg := runtime.DNSConfig{Servers: slices.Clone(b.cfg.ClusterDNS), Options: []string{ndots}}
	if domain := b.cfg.ClusterDomain; domain != "" {
		cfg.Searches = []string{pod.Namespace + ".svc." + domain, "svc." + domain, domain}
	}
	cfg.Searches = unique(append(cfg.Searches, host.Searches...))
	return cfg
}

// mergeDNS adds the pod's own dnsConfig: servers and searches behind those of
// the policy, options over them.
func mergeDNS(cfg runtime.DNSConfig, own *corev1.PodDNSConfig) runtime.DNSConfig {
	if own == nil {
		return cfg
	}
	cfg.Servers = unique(slices.Concat(cfg.Servers, own.Nameservers))
	cfg.Searches = unique(slices.Concat(cfg.Searches, own.Searches))
	options := slices.Clone(cfg.Options)
	for _, o := range own.Options {
		options = slices.DeleteFunc(options, func(have string) bool {
			name, _, _ := strings.Cut(have, ":")
			return name == o.Name
		})
		option := o.Name
		if o.Value != nil && *o.Value != "" {
			option += ":" + *o.Value
		}
		options = append(options, option)
	}
	cfg.Options = options
	return cfg
}

// limitDNS drops what resolvers would not look at, and search domains so long
// that some of them abort.
func limitDNS(cfg runtime.DNSConfig, warn func(reason, message string)) runtime.DNSConfig {
	if len(cfg.Servers) > maxNameservers {
		cfg.Servers = cfg.Servers[:maxNameservers]
		warn("DNSConfigForming", "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: "+
			strings.Join(cfg.Servers, " "))
	}
	asked := len(cfg.Searches)
	cfg.Searches = cfg.Searches[:min(len(cfg.Searches), maxSearches)]
	cfg.Searches = slices.DeleteFunc(slices.Clone(cfg.Searches), func(domain string) bool { return len(domain) > maxDomain })
	for len(strings.Join(cfg.Searches, " ")) > maxSearchChars {
		cfg.Searches = cfg.Searches[:len(cfg.Searches)-1]
	}
	if len(cfg.Searches) < asked {
		warn("DNSConfigForming", "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: "+
			strings.Join(cfg.Searches, " "))
	}
	return cfg
}

// unique drops repetitions and keeps the order.
func unique(in []string) []string {
	var out []string
	for _, s := range in {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// ParseResolvConf reads the lines of a resolv.conf that pods inherit. The last
// search or domain line wins, as in the resolver.
func ParseResolvConf(r io.Reader) (runtime.DNSConfig, error) {
	var cfg runtime.DNSConfig
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		line, _, _ = strings.Cut(line, ";")
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		switch words[0] {
		case "nameserver":
			cfg.Servers = append(cfg.Servers, words[1])
		case "search", "domain":
			cfg.Searches = nil
			for _, domain := range words[1:] {
				if domain != "." { // the root is always searched
					domain = strings.TrimSuffix(domain, ".")
				}
				cfg.Searches = append(cfg.Searches, domain)
			}
		case "options":
			cfg.Options = append(cfg.Options, words[1:]...)
		}
	}
	if err := lines.Err(); err != nil {
		return cfg, fmt.Errorf("reading resolv.conf: %w", err)
	}
	return cfg, nil
}
