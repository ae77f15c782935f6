package podspec

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/node/podactor"
	"nodekit.dev/resources"
	"nodekit.dev/runtime"
)

// Sandbox is the configuration of the pod's sandbox. Its errors have the reason
// "FailedCreatePodSandBox".
func (b *Builder) Sandbox(req podactor.SandboxSpecRequest) (runtime.SandboxConfig, error) {
	cfg, err := b.sandbox(req)
	if err != nil {
		return runtime.SandboxConfig{}, reasoned.New("FailedCreatePodSandBox", err)
	}
	cfg.Attempt = req.Attempt
	return cfg, nil
}

func (b *Builder) sandbox(req podactor.SandboxSpecRequest) (runtime.SandboxConfig, error) {
	pod := req.Pod
	if err := b.checkUserNamespace(req); err != nil {
		return runtime.SandboxConfig{}, err
	}
	hostname, err := b.hostname(pod)
	if err != nil {
		return runtime.SandboxConfig{}, err
	}
	dns, err := b.dns(pod, b.hostIPs(req.HostIPs), teller(req.Tell))
	if err != nil {
		return runtime.SandboxConfig{}, err
	}
	cfg := runtime.SandboxConfig{
		Name:           pod.Name,
		Namespace:      pod.Namespace,
		UID:            string(pod.UID),
		RuntimeHandler: req.RuntimeHandler,
		Hostname:       hostname,
		LogDirectory:   b.LogDirectory(pod),
		DNS:            dns,
		PortMappings:   portMappings(pod),
		Labels:         sandboxLabels(pod),
		Annotations:    maps.Clone(pod.Annotations),
		CgroupParent:   b.cfg.Cgroups.Parent(pod),
		Sysctls:        b.sysctls(pod),
		Security:       sandboxSecurity(req),
	}
	total := runtimeResources(resources.PodLimitsWithoutOverhead(pod, b.cfg.CPUQuota))
	cfg.Resources = &total
	if limits, ok := resources.OverheadLimits(pod, b.cfg.CPUQuota); ok {
		overhead := runtimeResources(limits)
		cfg.Overhead = &overhead
	}
	return cfg, nil
}

// LogDirectory is where the logs of the pod's containers go.
func (b *Builder) LogDirectory(pod *corev1.Pod) string {
	return filepath.Join(b.cfg.PodLogsDir, pod.Namespace+"_"+pod.Name+"_"+string(pod.UID))
}

// checkUserNamespace holds pods that want users of their own back where the
// runtime can not give them: they would be root on the node.
func (b *Builder) checkUserNamespace(req podactor.SandboxSpecRequest) error {
	switch can := b.features(req.RuntimeHandler).UserNamespaces; {
	case !ownUsers(req.Pod) || can && req.UserNamespace != nil:
		return nil
	case can:
		return errNoUsers
	case req.RuntimeHandler != "":
		return fmt.Errorf("can't set `spec.hostUsers: false`, RuntimeClass handler %q does not support user namespaces", req.RuntimeHandler)
	}
	return fmt.Errorf("can't set `spec.hostUsers: false`, runtime does not support user namespaces")
}

// ownUsers says that the pod is to have users of its own.
func ownUsers(pod *corev1.Pod) bool { return pod.Spec.HostUsers != nil && !*pod.Spec.HostUsers }

// errNoUsers keeps a pod from running as the node's users because somebody
// forgot to ask for its own.
var errNoUsers = errors.New("can't set `spec.hostUsers: false`, no user namespace was given to the pod")

// features are what a runtime handler can do.
func (b *Builder) features(handler string) RuntimeFeatures {
	if b.cfg.Features == nil {
		return RuntimeFeatures{}
	}
	return b.cfg.Features(handler)
}

// portMappings are the host ports of the containers that stay: main containers
// and sidecars. A host-network pod has the host's ports as they are.
func portMappings(pod *corev1.Pod) []runtime.PortMapping {
	if pod.Spec.HostNetwork {
		return nil
	}
	var out []runtime.PortMapping
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			if p.HostPort <= 0 {
				continue
			}
			protocol := string(p.Protocol)
			if protocol == "" {
				protocol = string(corev1.ProtocolTCP)
			}
			out = append(out, runtime.PortMapping{
				Protocol: protocol, ContainerPort: p.ContainerPort, HostPort: p.HostPort, HostIP: p.HostIP,
			})
		}
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; resources.IsSidecar(c) {
			add(c)
		}
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i])
	}
	return out
}

func runtimeResources(l resources.Limits) runtime.Resources {
	return runtime.Resources{
		CPUShares:      l.CPUShares,
		CPUQuota:       l.CPUQuota,
		CPUPeriod:      l.CPUPeriod,
		Memory:         l.Memory,
		HugepageLimits: l.Hugepages,
	}
}
