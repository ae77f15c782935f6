package register

import (
	"context"
	"fmt"
	goruntime "runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"nodekit.dev/node"
	"nodekit.dev/runtime"
)

// stockSetters are those that every node has.
func stockSetters(cfg Config, parts Parts, contributors []node.Ordered[Contributor]) []node.Ordered[Setter] {
	capacity := &capacitySetter{cfg: cfg, parts: parts, contributors: contributors}
	var out []node.Ordered[Setter]
	add := func(name string, s Setter, after ...string) {
		out = append(out, node.Ordered[Setter]{Name: name, After: after, Value: s})
	}
	addresses := AddressConfig{NodeName: cfg.NodeName, Hostname: cfg.Hostname, NodeIPs: cfg.NodeIPs, ExternalCloud: cfg.ExternalCloud}
	add(SetAddresses, addressSetter(addresses, parts.Network))
	add(SetCapacity, SetterFunc(capacity.setCapacity))
	add(SetAllocatable, SetterFunc(capacity.setAllocatable), SetCapacity)
	add(SetMachine, machineSetter(cfg, parts))
	add(SetVersions, versionSetter(cfg, parts))
	add(SetPlatform, SetterFunc(setPlatform))
	add(SetEndpoints, endpointSetter(cfg.Port))
	add(SetDeclaredFeatures, declaredSetter(cfg.DeclaredFeatures))
	if parts.Images != nil {
		add(SetImages, newImageSetter(cfg.MaxImages, parts.Images))
	}
	if parts.Runtime != nil {
		add(SetRuntimeHandlers, handlerSetter(parts.Runtime))
		add(SetFeatures, featureSetter(parts.Runtime))
	}
	if parts.VolumesInUse != nil {
		add(SetVolumesInUse, volumeSetter(parts.VolumesInUse))
	}
	add(SetMemoryPressure, pressureSetter(corev1.NodeMemoryPressure, parts.Pressure, func(p Pressure) bool { return p.Memory }))
	add(SetDiskPressure, pressureSetter(corev1.NodeDiskPressure, parts.Pressure, func(p Pressure) bool { return p.Disk }), SetMemoryPressure)
	add(SetPIDPressure, pressureSetter(corev1.NodePIDPressure, parts.Pressure, func(p Pressure) bool { return p.PID }), SetDiskPressure)
	// Old control planes want Ready to be the last condition.
	add(SetReady, readySetter(cfg, parts), SetAllocatable, SetPIDPressure)
	return out
}

func machineSetter(cfg Config, parts Parts) SetterFunc {
	return func(_ context.Context, n *corev1.Node) error {
		m, err := parts.Machine()
		if err != nil {
			return err
		}
		info := &n.Status.NodeInfo
		info.MachineID, info.SystemUUID, info.BootID = m.MachineID, m.SystemUUID, m.BootID
		info.KernelVersion, info.OSImage = m.KernelVersion, m.OSImage
		if m.Swap > 0 {
			info.Swap = &corev1.NodeSwapStatus{Capacity: &m.Swap}
		}
		if cfg.TellUserNamespace {
			info.RunningInUserNamespace = &m.UserNamespace
		}
		return nil
	}
}

func versionSetter(cfg Config, parts Parts) SetterFunc {
	return func(_ context.Context, n *corev1.Node) error {
		info := &n.Status.NodeInfo
		info.KubeletVersion = cfg.KubeletVersion
		info.KubeProxyVersion = cfg.KubeProxyVersion //nolint:staticcheck // a gate still brings it back
		if parts.Runtime != nil {
			if s := parts.Runtime(); s.Name != "" { // else nothing is known yet
				info.ContainerRuntimeVersion = runtimeVersion(s)
			}
		}
		return nil
	}
}

// runtimeVersion is such as "containerd://2.4.2": the version in numbers, or
// "Unknown".
func runtimeVersion(s runtime.Status) string {
	if v, err := version.ParseSemantic(s.Version); err == nil {
		return s.Name + "://" + v.String()
	}
	if v, err := version.ParseGeneric(s.Version); err == nil {
		return s.Name + "://" + v.String()
	}
	return s.Name + "://Unknown"
}

func setPlatform(_ context.Context, n *corev1.Node) error {
	n.Status.NodeInfo.OperatingSystem, n.Status.NodeInfo.Architecture = goruntime.GOOS, goruntime.GOARCH
	return nil
}

func endpointSetter(port int32) SetterFunc {
	return func(_ context.Context, n *corev1.Node) error {
		n.Status.DaemonEndpoints.KubeletEndpoint.Port = port
		return nil
	}
}

func declaredSetter(features []string) SetterFunc {
	return func(_ context.Context, n *corev1.Node) error {
		n.Status.DeclaredFeatures = features
		return nil
	}
}

func handlerSetter(status func() runtime.Status) SetterFunc {
	return func(_ context.Context, n *corev1.Node) error {
		s := status()
		if !s.Runtime.Known && len(s.Handlers) == 0 {
			return nil // the runtime was not asked yet: what an earlier agent told still holds
		}
		n.Status.RuntimeHandlers = nil
		for _, h := range s.Handlers {
			n.Status.RuntimeHandlers = append(n.Status.RuntimeHandlers, corev1.NodeRuntimeHandler{
				Name: h.Name,
				Features: &corev1.NodeRuntimeHandlerFeatures{
					RecursiveReadOnlyMounts: &h.RecursiveReadOnlyMounts, UserNamespaces: &h.UserNamespaces,
				},
			})
		}
		return nil
	}
}

func featureSetter(status func() runtime.Status) SetterFunc {
	return func(_ context.Context, n *corev1.Node) error {
		if f := status().Features; f != nil {
			n.Status.Features = &corev1.NodeFeatures{SupplementalGroupsPolicy: &f.SupplementalGroupsPolicy}
		}
		return nil
	}
}

func volumeSetter(inUse func() ([]corev1.UniqueVolumeName, bool)) SetterFunc {
	return func(_ context.Context, n *corev1.Node) error {
		if volumes, known := inUse(); known {
			n.Status.VolumesInUse = volumes
		}
		return nil
	}
}

func pressureSetter(kind corev1.NodeConditionType, pressure func() Pressure, under func(Pressure) bool) SetterFunc {
	return func(_ context.Context, n *corev1.Node) error {
		SetCondition(n, pressureCondition(kind, pressure != nil && under(pressure())))
		return nil
	}
}

func readySetter(cfg Config, parts Parts) SetterFunc {
	required := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}
	if cfg.LocalStorage {
		required = append(required, corev1.ResourceEphemeralStorage)
	}
	return func(_ context.Context, n *corev1.Node) error {
		in := readyInput{now: time.Now(), grace: cfg.RuntimeGrace, capacity: n.Status.Capacity, required: required, problems: problemsOf(parts.Checks)}
		if parts.Runtime != nil {
			s := parts.Runtime()
			in.runtime = &s
		}
		SetCondition(n, readyCondition(in))
		return nil
	}
}

func problemsOf(checks []Check) (out []string) {
	for _, c := range checks {
		err := c.Problem()
		switch {
		case err == nil:
		case c.Name == "":
			out = append(out, err.Error())
		default:
			out = append(out, fmt.Sprintf("%s is not healthy: %v", c.Name, err))
		}
	}
	return out
}
