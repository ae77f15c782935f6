package cri

import (
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

func sandboxSecurity(s runtime.SandboxSecurity) (*runtimeapi.LinuxSandboxSecurityContext, error) {
	common, err := commonSecurity(s.Namespaces, s.SupplementalGroupsPolicy, s.Seccomp, s.AppArmor)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.LinuxSandboxSecurityContext{
		NamespaceOptions:         common.namespaces,
		SelinuxOptions:           seLinux(s.SELinux),
		RunAsUser:                int64Value(s.RunAsUser),
		RunAsGroup:               int64Value(s.RunAsGroup),
		ReadonlyRootfs:           s.ReadonlyRootfs,
		SupplementalGroups:       s.SupplementalGroups,
		SupplementalGroupsPolicy: common.groups,
		Privileged:               s.Privileged,
		Seccomp:                  common.seccomp,
		Apparmor:                 common.appArmor,
	}, nil
}

func containerSecurity(s runtime.ContainerSecurity) (*runtimeapi.LinuxContainerSecurityContext, error) {
	common, err := commonSecurity(s.Namespaces, s.SupplementalGroupsPolicy, s.Seccomp, s.AppArmor)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.LinuxContainerSecurityContext{
		// Ambient capabilities are never asked for (k/k#104620).
		Capabilities: &runtimeapi.Capability{
			AddCapabilities: s.AddCapabilities, DropCapabilities: s.DropCapabilities,
		},
		Privileged:               s.Privileged,
		NamespaceOptions:         common.namespaces,
		SelinuxOptions:           seLinux(s.SELinux),
		RunAsUser:                int64Value(s.RunAsUser),
		RunAsGroup:               int64Value(s.RunAsGroup),
		RunAsUsername:            s.RunAsUserName,
		ReadonlyRootfs:           s.ReadonlyRootfs,
		SupplementalGroups:       s.SupplementalGroups,
		SupplementalGroupsPolicy: common.groups,
		NoNewPrivs:               s.NoNewPrivileges,
		MaskedPaths:              s.MaskedPaths,
		ReadonlyPaths:            s.ReadonlyPaths,
		Seccomp:                  common.seccomp,
		Apparmor:                 common.appArmor,
	}, nil
}

// common is what sandboxes and containers say in the same way.
type common struct {
	namespaces *runtimeapi.NamespaceOption
	groups     runtimeapi.SupplementalGroupsPolicy
	seccomp    *runtimeapi.SecurityProfile
	appArmor   *runtimeapi.SecurityProfile
}

func commonSecurity(ns runtime.Namespaces, groups string, seccomp, appArmor *runtime.Profile) (out common, err error) {
	if out.namespaces, err = namespaces(ns); err != nil {
		return out, err
	}
	policy, ok := runtimeapi.SupplementalGroupsPolicy_value[groups]
	if !ok && groups != "" {
		return out, fmt.Errorf("supplemental groups policy %q is not Merge or Strict", groups)
	}
	out.groups = runtimeapi.SupplementalGroupsPolicy(policy)
	if out.seccomp, err = profile("seccomp", seccomp); err != nil {
		return out, err
	}
	out.appArmor, err = profile("AppArmor", appArmor)
	return out, err
}

// namespaces takes an empty mode as the pod's own network and IPC, and as a
// PID namespace for each container, the least that can be shared.
func namespaces(ns runtime.Namespaces) (*runtimeapi.NamespaceOption, error) {
	network, err := namespaceMode("network", ns.Network, runtime.NamespacePod)
	if err != nil {
		return nil, err
	}
	ipc, err := namespaceMode("IPC", ns.IPC, runtime.NamespacePod)
	if err != nil {
		return nil, err
	}
	pid, err := namespaceMode("PID", ns.PID, runtime.NamespaceContainer)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.NamespaceOption{
		Network: network, Ipc: ipc, Pid: pid, TargetId: ns.TargetID, UsernsOptions: userNamespace(ns.User),
	}, nil
}

// userNamespace says nothing for the node's: an older runtime would not know
// what is meant.
func userNamespace(ns *runtime.UserNamespace) *runtimeapi.UserNamespace {
	if ns == nil {
		return nil
	}
	return &runtimeapi.UserNamespace{
		Mode: runtimeapi.NamespaceMode_POD, Uids: idMappings(ns.UIDs), Gids: idMappings(ns.GIDs),
	}
}

func idMappings(in []runtime.IDMapping) []*runtimeapi.IDMapping {
	var out []*runtimeapi.IDMapping
	for _, m := range in {
		out = append(out, &runtimeapi.IDMapping{HostId: m.HostID, ContainerId: m.ContainerID, Length: m.Length})
	}
	return out
}

func namespaceMode(which string, mode, fallback runtime.NamespaceMode) (runtimeapi.NamespaceMode, error) {
	if mode == "" {
		mode = fallback
	}
	switch mode {
	case runtime.NamespacePod:
		return runtimeapi.NamespaceMode_POD, nil
	case runtime.NamespaceContainer:
		return runtimeapi.NamespaceMode_CONTAINER, nil
	case runtime.NamespaceNode:
		return runtimeapi.NamespaceMode_NODE, nil
	case runtime.NamespaceTarget:
		return runtimeapi.NamespaceMode_TARGET, nil
	}
	return 0, fmt.Errorf("%s namespace: mode %q is not known", which, mode)
}

func profile(which string, p *runtime.Profile) (*runtimeapi.SecurityProfile, error) {
	if p == nil {
		return nil, nil
	}
	switch p.Type {
	case runtime.ProfileRuntimeDefault:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}, nil
	case runtime.ProfileUnconfined:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}, nil
	case runtime.ProfileLocalhost:
		if p.LocalhostRef == "" {
			return nil, fmt.Errorf("%s profile: type Localhost without a name", which)
		}
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: p.LocalhostRef}, nil
	}
	return nil, fmt.Errorf("%s profile: type %q is not known", which, p.Type)
}

func seLinux(o *runtime.SELinuxOptions) *runtimeapi.SELinuxOption {
	if o == nil {
		return nil
	}
	return &runtimeapi.SELinuxOption{User: o.User, Role: o.Role, Type: o.Type, Level: o.Level}
}

func int64Value(v *int64) *runtimeapi.Int64Value {
	if v == nil {
		return nil
	}
	return &runtimeapi.Int64Value{Value: *v}
}
