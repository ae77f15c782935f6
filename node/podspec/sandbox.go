package podspec

import (
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
	cfg, err := b.sandbox(req.Pod)
	if err != nil {
		return runtime.SandboxConfig{}, reasoned.New("FailedCreatePodSandBox", err)
	}
	cfg.Attempt = req.Attempt
	return cfg, nil
}

func (b *Builder) sandbox(pod *corev1.Pod) (runtime.SandboxConfig, error) {
	hostname, err := b.hostname(pod)
	if err != nil {
		return runtime.SandboxConfig{}, err
	}
	dns, err := b.dns(pod)
	if err != nil {
		return runtime.SandboxConfig{}, err
	}
	handler, err := b.runtimeHandler(pod)
	if err != nil {
		return runtime.SandboxConfig{}, err
	}
	cfg := runtime.SandboxConfig{
		Name:           pod.Name,
		Namespace:      pod.Namespace,
		UID:            string(pod.UID),
		RuntimeHandler: handler,
		Hostname:       hostname,
		LogDirectory:   b.LogDirectory(pod),
		DNS:            dns,
		PortMappings:   portMappings(pod),
		Labels:         sandboxLabels(pod),
		Annotations:    maps.Clone(pod.Annotations),
		CgroupParent:   b.cfg.Cgroups.Parent(pod),
		Sysctls:        sysctls(pod),
		Security:       sandboxSecurity(pod),
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

func (b *Builder) runtimeHandler(pod *corev1.Pod) (string, error) {
	class := value(pod.Spec.RuntimeClassName)
	if class == "" {
		return "", nil
	}
	handler, ok := b.cfg.RuntimeHandlers[class]
	if !ok {
		return "", fmt.Errorf("spec.runtimeClassName: no handler is known for runtime class %q", class)
	}
	return handler, nil
}

// features are what the pod's runtime handler can do.
func (b *Builder) features(pod *corev1.Pod) RuntimeFeatures {
	handler, err := b.runtimeHandler(pod)
	if err != nil || b.cfg.Features == nil {
		return RuntimeFeatures{} // such a pod is refused for its runtime class
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
