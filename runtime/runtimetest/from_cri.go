package runtimetest

import (
	"strings"

	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

// The translations here are written apart from those of runtime/cri, so that a
// mistake of one side shows when both meet.

func sandboxFromCRI(c *criv1.PodSandboxConfig) runtime.SandboxConfig {
	m, linux := c.GetMetadata(), c.GetLinux()
	s := runtime.SandboxConfig{
		Name:         m.GetName(),
		Namespace:    m.GetNamespace(),
		UID:          m.GetUid(),
		Attempt:      m.GetAttempt(),
		Hostname:     c.GetHostname(),
		LogDirectory: c.GetLogDirectory(),
		DNS: runtime.DNSConfig{
			Servers:  c.GetDnsConfig().GetServers(),
			Searches: c.GetDnsConfig().GetSearches(),
			Options:  c.GetDnsConfig().GetOptions(),
		},
		Labels:       c.GetLabels(),
		Annotations:  c.GetAnnotations(),
		CgroupParent: linux.GetCgroupParent(),
		Sysctls:      linux.GetSysctls(),
		Security:     sandboxSecurityFromCRI(linux.GetSecurityContext()),
	}
	for _, p := range c.GetPortMappings() {
		s.PortMappings = append(s.PortMappings, runtime.PortMapping{
			Protocol: p.GetProtocol().String(), ContainerPort: p.GetContainerPort(), HostPort: p.GetHostPort(), HostIP: p.GetHostIp(),
		})
	}
	if o := linux.GetOverhead(); o != nil {
		r := resourcesFromCRI(o)
		s.Overhead = &r
	}
	if o := linux.GetResources(); o != nil {
		r := resourcesFromCRI(o)
		s.Resources = &r
	}
	return s
}

func sandboxSecurityFromCRI(c *criv1.LinuxSandboxSecurityContext) runtime.SandboxSecurity {
	return runtime.SandboxSecurity{
		Namespaces:               namespacesFromCRI(c.GetNamespaceOptions()),
		SELinux:                  selinuxFromCRI(c.GetSelinuxOptions()),
		RunAsUser:                int64FromCRI(c.GetRunAsUser()),
		RunAsGroup:               int64FromCRI(c.GetRunAsGroup()),
		ReadonlyRootfs:           c.GetReadonlyRootfs(),
		SupplementalGroups:       c.GetSupplementalGroups(),
		SupplementalGroupsPolicy: policyFromCRI(c.GetSupplementalGroupsPolicy()),
		Privileged:               c.GetPrivileged(),
		Seccomp:                  profileFromCRI(c.GetSeccomp()),
		AppArmor:                 profileFromCRI(c.GetApparmor()),
	}
}

func containerFromCRI(c *criv1.ContainerConfig) runtime.ContainerConfig {
	image := c.GetImage()
	out := runtime.ContainerConfig{
		Name:        c.GetMetadata().GetName(),
		Attempt:     c.GetMetadata().GetAttempt(),
		Image:       runtime.Image{Ref: image.GetImage(), Requested: image.GetUserSpecifiedImage(), RuntimeHandler: image.GetRuntimeHandler()},
		Command:     c.GetCommand(),
		Args:        c.GetArgs(),
		WorkingDir:  c.GetWorkingDir(),
		Labels:      c.GetLabels(),
		Annotations: c.GetAnnotations(),
		LogPath:     c.GetLogPath(),
		Stdin:       c.GetStdin(),
		StdinOnce:   c.GetStdinOnce(),
		TTY:         c.GetTty(),
		Resources:   resourcesFromCRI(c.GetLinux().GetResources()),
		Security:    containerSecurityFromCRI(c.GetLinux().GetSecurityContext()),
	}
	if s := c.GetStopSignal(); s != criv1.Signal_SIGNAL_RUNTIME_DEFAULT {
		out.StopSignal = strings.TrimPrefix(s.String(), "SIGNAL_")
	}
	for _, e := range c.GetEnvs() {
		out.Env = append(out.Env, runtime.EnvVar{Name: e.GetKey(), Value: string(e.GetValue())})
	}
	for _, m := range c.GetMounts() {
		out.Mounts = append(out.Mounts, runtime.Mount{
			HostPath: m.GetHostPath(), ContainerPath: m.GetContainerPath(), ReadOnly: m.GetReadonly(),
			RecursiveReadOnly: m.GetRecursiveReadOnly(), SELinuxRelabel: m.GetSelinuxRelabel(),
			Propagation: propagationFromCRI(m.GetPropagation()),
		})
	}
	for _, d := range c.GetDevices() {
		out.Devices = append(out.Devices, runtime.Device{HostPath: d.GetHostPath(), ContainerPath: d.GetContainerPath(), Permissions: d.GetPermissions()})
	}
	return out
}

func containerSecurityFromCRI(c *criv1.LinuxContainerSecurityContext) runtime.ContainerSecurity {
	return runtime.ContainerSecurity{
		AddCapabilities:          c.GetCapabilities().GetAddCapabilities(),
		DropCapabilities:         c.GetCapabilities().GetDropCapabilities(),
		Privileged:               c.GetPrivileged(),
		Namespaces:               namespacesFromCRI(c.GetNamespaceOptions()),
		SELinux:                  selinuxFromCRI(c.GetSelinuxOptions()),
		RunAsUser:                int64FromCRI(c.GetRunAsUser()),
		RunAsGroup:               int64FromCRI(c.GetRunAsGroup()),
		RunAsUserName:            c.GetRunAsUsername(),
		ReadonlyRootfs:           c.GetReadonlyRootfs(),
		SupplementalGroups:       c.GetSupplementalGroups(),
		SupplementalGroupsPolicy: policyFromCRI(c.GetSupplementalGroupsPolicy()),
		NoNewPrivileges:          c.GetNoNewPrivs(),
		MaskedPaths:              c.GetMaskedPaths(),
		ReadonlyPaths:            c.GetReadonlyPaths(),
		Seccomp:                  profileFromCRI(c.GetSeccomp()),
		AppArmor:                 profileFromCRI(c.GetApparmor()),
	}
}

func resourcesFromCRI(r *criv1.LinuxContainerResources) runtime.Resources {
	out := runtime.Resources{
		CPUPeriod:   r.GetCpuPeriod(),
		CPUQuota:    r.GetCpuQuota(),
		CPUShares:   r.GetCpuShares(),
		Memory:      r.GetMemoryLimitInBytes(),
		MemorySwap:  r.GetMemorySwapLimitInBytes(),
		OOMScoreAdj: r.GetOomScoreAdj(),
		CpusetCPUs:  r.GetCpusetCpus(),
		CpusetMems:  r.GetCpusetMems(),
		Unified:     r.GetUnified(),
	}
	for _, h := range r.GetHugepageLimits() {
		if out.HugepageLimits == nil {
			out.HugepageLimits = map[string]uint64{}
		}
		out.HugepageLimits[h.GetPageSize()] = h.GetLimit()
	}
	return out
}

func namespacesFromCRI(n *criv1.NamespaceOption) runtime.Namespaces {
	return runtime.Namespaces{
		Network:  modeFromCRI(n.GetNetwork()),
		PID:      modeFromCRI(n.GetPid()),
		IPC:      modeFromCRI(n.GetIpc()),
		TargetID: n.GetTargetId(),
		User:     userFromCRI(n.GetUsernsOptions()),
	}
}

// userFromCRI takes all but a namespace of the pod's own for the node's.
func userFromCRI(u *criv1.UserNamespace) *runtime.UserNamespace {
	if u == nil || u.GetMode() != criv1.NamespaceMode_POD {
		return nil
	}
	mapped := func(in []*criv1.IDMapping) (out []runtime.IDMapping) {
		for _, m := range in {
			out = append(out, runtime.IDMapping{HostID: m.GetHostId(), ContainerID: m.GetContainerId(), Length: m.GetLength()})
		}
		return out
	}
	return &runtime.UserNamespace{UIDs: mapped(u.GetUids()), GIDs: mapped(u.GetGids())}
}

func modeFromCRI(m criv1.NamespaceMode) runtime.NamespaceMode {
	return runtime.NamespaceMode(strings.ToLower(m.String()))
}

func propagationFromCRI(p criv1.MountPropagation) runtime.Propagation {
	switch p {
	case criv1.MountPropagation_PROPAGATION_HOST_TO_CONTAINER:
		return runtime.PropagationHostToContainer
	case criv1.MountPropagation_PROPAGATION_BIDIRECTIONAL:
		return runtime.PropagationBidirectional
	case criv1.MountPropagation_PROPAGATION_PRIVATE:
	}
	return runtime.PropagationPrivate
}

// policyFromCRI leaves the default empty: the wire does not tell it from "Merge".
func policyFromCRI(p criv1.SupplementalGroupsPolicy) string {
	if p == criv1.SupplementalGroupsPolicy_Strict {
		return "Strict"
	}
	return ""
}

func selinuxFromCRI(o *criv1.SELinuxOption) *runtime.SELinuxOptions {
	if o == nil {
		return nil
	}
	return &runtime.SELinuxOptions{User: o.GetUser(), Role: o.GetRole(), Type: o.GetType(), Level: o.GetLevel()}
}

func profileFromCRI(p *criv1.SecurityProfile) *runtime.Profile {
	if p == nil {
		return nil
	}
	return &runtime.Profile{Type: runtime.ProfileType(p.GetProfileType().String()), LocalhostRef: p.GetLocalhostRef()}
}

func int64FromCRI(v *criv1.Int64Value) *int64 {
	if v == nil {
		return nil
	}
	n := v.GetValue()
	return &n
}

func imageSpecFromCRI(s *criv1.ImageSpec) runtime.ImageSpec {
	return runtime.ImageSpec{Image: s.GetImage(), RuntimeHandler: s.GetRuntimeHandler(), Annotations: s.GetAnnotations()}
}

func authFromCRI(a *criv1.AuthConfig) runtime.ImageAuth {
	return runtime.ImageAuth{
		Username: a.GetUsername(), Password: a.GetPassword(), Auth: a.GetAuth(),
		ServerAddress: a.GetServerAddress(), IdentityToken: a.GetIdentityToken(), RegistryToken: a.GetRegistryToken(),
	}
}

// sandboxFieldsOfV1 and containerFieldsOfV1 list the fields that are set and
// that a v1alpha2 runtime would ignore, giving the pod something else than it
// asked for.
func sandboxFieldsOfV1(c *criv1.PodSandboxConfig) []string {
	var set []string
	if c.GetLinux().GetSecurityContext().GetSupplementalGroupsPolicy() != criv1.SupplementalGroupsPolicy_Merge {
		set = append(set, "linux.security_context.supplemental_groups_policy")
	}
	if c.GetLinux().GetSecurityContext().GetNamespaceOptions().GetUsernsOptions() != nil {
		set = append(set, "linux.security_context.namespace_options.userns_options")
	}
	return set
}

func containerFieldsOfV1(c *criv1.ContainerConfig) []string {
	var set []string
	if c.GetLinux().GetSecurityContext().GetSupplementalGroupsPolicy() != criv1.SupplementalGroupsPolicy_Merge {
		set = append(set, "linux.security_context.supplemental_groups_policy")
	}
	if c.GetStopSignal() != criv1.Signal_SIGNAL_RUNTIME_DEFAULT {
		set = append(set, "stop_signal")
	}
	if len(c.GetCDIDevices()) > 0 {
		set = append(set, "CDI_devices")
	}
	if c.GetImage().GetRuntimeHandler() != "" {
		set = append(set, "image.runtime_handler")
	}
	for _, m := range c.GetMounts() {
		if m.GetRecursiveReadOnly() {
			set = append(set, "mounts.recursive_read_only")
		}
	}
	return set
}
