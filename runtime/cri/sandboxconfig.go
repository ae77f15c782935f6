package cri

import (
	"fmt"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

// sandboxConfig says in the CRI's messages what a sandbox should be.
func sandboxConfig(cfg runtime.SandboxConfig) (*runtimeapi.PodSandboxConfig, error) {
	security, err := sandboxSecurity(cfg.Security)
	if err != nil {
		return nil, err
	}
	ports, err := portMappings(cfg.PortMappings)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{
			Name: cfg.Name, Namespace: cfg.Namespace, Uid: cfg.UID, Attempt: cfg.Attempt,
		},
		Hostname:     cfg.Hostname,
		LogDirectory: cfg.LogDirectory,
		DnsConfig:    dnsConfig(cfg.DNS),
		PortMappings: ports,
		Labels:       cfg.Labels,
		Annotations:  cfg.Annotations,
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent:    cfg.CgroupParent,
			SecurityContext: security,
			Sysctls:         cfg.Sysctls,
			Overhead:        optionalResources(cfg.Overhead),
			Resources:       optionalResources(cfg.Resources),
		},
	}, nil
}

// dnsConfig leaves an empty configuration out: then the runtime gives the
// sandbox the host's resolv.conf, whatever it makes of an empty message.
func dnsConfig(d runtime.DNSConfig) *runtimeapi.DNSConfig {
	if len(d.Servers)+len(d.Searches)+len(d.Options) == 0 {
		return nil
	}
	return &runtimeapi.DNSConfig{Servers: d.Servers, Searches: d.Searches, Options: d.Options}
}

func portMappings(in []runtime.PortMapping) ([]*runtimeapi.PortMapping, error) {
	var out []*runtimeapi.PortMapping
	for _, p := range in {
		protocol, ok := runtimeapi.Protocol_value[strings.ToUpper(p.Protocol)]
		if !ok && p.Protocol != "" {
			return nil, fmt.Errorf("port %d: protocol %q is not TCP, UDP or SCTP", p.ContainerPort, p.Protocol)
		}
		out = append(out, &runtimeapi.PortMapping{
			Protocol:      runtimeapi.Protocol(protocol),
			ContainerPort: p.ContainerPort,
			HostPort:      p.HostPort,
			HostIp:        p.HostIP,
		})
	}
	return out, nil
}

func optionalResources(r *runtime.Resources) *runtimeapi.LinuxContainerResources {
	if r == nil {
		return nil
	}
	return resources(*r)
}

// resources sorts the huge page sizes, so that equal configurations give
// equal messages.
func resources(r runtime.Resources) *runtimeapi.LinuxContainerResources {
	out := &runtimeapi.LinuxContainerResources{
		CpuPeriod:              r.CPUPeriod,
		CpuQuota:               r.CPUQuota,
		CpuShares:              r.CPUShares,
		MemoryLimitInBytes:     r.Memory,
		MemorySwapLimitInBytes: r.MemorySwap,
		OomScoreAdj:            r.OOMScoreAdj,
		CpusetCpus:             r.CpusetCPUs,
		CpusetMems:             r.CpusetMems,
		Unified:                r.Unified,
	}
	for size, limit := range r.HugepageLimits {
		out.HugepageLimits = append(out.HugepageLimits, &runtimeapi.HugepageLimit{PageSize: size, Limit: limit})
	}
	slices.SortFunc(out.HugepageLimits, func(a, b *runtimeapi.HugepageLimit) int {
		return strings.Compare(a.PageSize, b.PageSize)
	})
	return out
}
