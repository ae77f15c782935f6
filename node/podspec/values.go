package podspec

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// refusedValues looks at fields that are acted on for some of their values only.
func (b *Builder) refusedValues(pod *corev1.Pod) []refusal {
	out := b.refusedPodValues(pod)
	out = append(out, b.refusedPodSecurity(pod)...)
	for i := range pod.Spec.Volumes {
		out = append(out, b.refusedInVolume(&pod.Spec.Volumes[i], fmt.Sprintf("spec.volumes[%d]", i))...)
	}
	out = append(out, b.refusedRestarts(pod)...)
	for i := range pod.Spec.InitContainers {
		out = append(out, b.refusedInContainer(pod, &pod.Spec.InitContainers[i], fmt.Sprintf("spec.initContainers[%d]", i))...)
	}
	for i := range pod.Spec.Containers {
		out = append(out, b.refusedInContainer(pod, &pod.Spec.Containers[i], fmt.Sprintf("spec.containers[%d]", i))...)
	}
	for i := range pod.Spec.EphemeralContainers {
		c := corev1.Container(pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		out = append(out, b.refusedInContainer(pod, &c, fmt.Sprintf("spec.ephemeralContainers[%d]", i))...)
	}
	return out
}

func (b *Builder) refusedPodValues(pod *corev1.Pod) []refusal {
	var out []refusal
	spec := &pod.Spec
	for field, name := range map[string]string{"uid": string(pod.UID), "name": pod.Name, "namespace": pod.Namespace} {
		if !isFileName(name) {
			out = append(out, refusal{"metadata." + field, fmt.Sprintf("%q can not be part of a path", name), ""})
		}
	}
	if spec.OS != nil && spec.OS.Name != corev1.Linux {
		out = append(out, refusal{"spec.os.name", "Failed to admit pod as the OS field doesn't match node OS", "PodOSNotSupported"})
	}
	if ownUsers(pod) && (spec.HostNetwork || spec.HostPID || spec.HostIPC) {
		out = append(out, refusal{"spec.hostUsers", "false does not go with hostNetwork, hostPID or hostIPC", ""})
	}
	if spec.DNSPolicy == corev1.DNSNone && (spec.DNSConfig == nil || len(spec.DNSConfig.Nameservers) == 0) {
		out = append(out, refusal{"spec.dnsConfig.nameservers", "needed with dnsPolicy None", ""})
	}
	if known := []corev1.DNSPolicy{"", corev1.DNSNone, corev1.DNSDefault, corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet}; !slices.Contains(known, spec.DNSPolicy) {
		out = append(out, refusal{"spec.dnsPolicy", fmt.Sprintf("%q is not known", spec.DNSPolicy), ""})
	}
	if len(spec.HostAliases) > 0 && (!b.cfg.ManageHosts || spec.HostNetwork && b.cfg.NodeHosts == nil) {
		out = append(out, refusal{"spec.hostAliases", "this agent does not manage the hosts file of such a pod", ""})
	}
	return out
}

// isFileName: UIDs, names and namespaces become names of directories and cgroups.
func isFileName(name string) bool {
	return filepath.IsLocal(name) && filepath.Base(name) == name && name != "."
}

func (b *Builder) refusedPodSecurity(pod *corev1.Pod) []refusal {
	sc := pod.Spec.SecurityContext
	if sc == nil {
		return nil
	}
	const at = "spec.securityContext."
	var out []refusal
	for i, s := range sc.Sysctls {
		if why := b.sysctlRefusal(pod, s.Name); why != "" {
			out = append(out, refusal{fmt.Sprintf(at+"sysctls[%d]", i), why, "SysctlForbidden"})
		}
	}
	switch value(sc.SupplementalGroupsPolicy) {
	case "", corev1.SupplementalGroupsPolicyMerge:
	case corev1.SupplementalGroupsPolicyStrict:
		if !b.features("").SupplementalGroupsPolicy { // of the runtime, whatever the handler
			out = append(out, refusal{at + "supplementalGroupsPolicy", "SupplementalGroupsPolicy=Strict is not supported in this node", "SupplementalGroupsPolicyNotSupported"})
		}
	default:
		out = append(out, refusal{at + "supplementalGroupsPolicy", fmt.Sprintf("%q is not known", *sc.SupplementalGroupsPolicy), ""})
	}
	return append(out, b.refusedProfiles(sc.SeccompProfile, sc.AppArmorProfile, at)...)
}

// refusedProfiles looks at the profiles that a pod or a container names itself.
func (b *Builder) refusedProfiles(seccomp *corev1.SeccompProfile, apparmor *corev1.AppArmorProfile, at string) []refusal {
	var out []refusal
	if seccomp != nil {
		if _, err := b.seccomp(seccomp); err != nil {
			out = append(out, refusal{at + "seccompProfile", err.Error(), ""})
		}
	}
	if apparmor != nil {
		_, err := appArmorField(apparmor)
		confines := apparmor.Type != corev1.AppArmorProfileTypeUnconfined
		out = append(out, b.refusedAppArmor(at+"appArmorProfile", confines, err)...)
	}
	return out
}

func (b *Builder) refusedAppArmor(at string, confines bool, err error) []refusal {
	switch {
	case confines && !b.cfg.AppArmor:
		return []refusal{{at, "Cannot enforce AppArmor: AppArmor is not enabled on the host", "AppArmor"}}
	case err != nil:
		return []refusal{{at, "Cannot enforce AppArmor: " + err.Error(), "AppArmor"}}
	}
	return nil
}

func (b *Builder) refusedInContainer(pod *corev1.Pod, c *corev1.Container, at string) []refusal {
	out := refusedResources(c, at+".resources.")
	for i := range c.VolumeMounts {
		out = append(out, refusedMount(c, &c.VolumeMounts[i], fmt.Sprintf("%s.volumeMounts[%d].", at, i))...)
	}
	out = append(out, b.refusedByGate(c, at)...)
	if text, ok := pod.Annotations[appArmorAnnotation+c.Name]; ok {
		_, err := appArmorText(text)
		confines := text != corev1.DeprecatedAppArmorBetaProfileNameUnconfined
		key := fmt.Sprintf("metadata.annotations[%s%s]", appArmorAnnotation, c.Name)
		out = append(out, b.refusedAppArmor(key, confines, err)...)
	}
	sc := c.SecurityContext
	if sc == nil {
		return out
	}
	at += ".securityContext."
	switch p := value(sc.ProcMount); {
	case p == "", p == corev1.DefaultProcMount:
	case p != corev1.UnmaskedProcMount:
		out = append(out, refusal{at + "procMount", fmt.Sprintf("%q is not known", p), ""})
	case !ownUsers(pod):
		out = append(out, refusal{at + "procMount", "Unmasked needs users of the pod's own (hostUsers: false)", ""})
	}
	return append(out, b.refusedProfiles(sc.SeccompProfile, sc.AppArmorProfile, at)...)
}

// refusedByGate looks at fields whose feature gate is off.
func (b *Builder) refusedByGate(c *corev1.Container, at string) []refusal {
	var out []refusal
	if !b.cfg.StopSignals && c.Lifecycle != nil && c.Lifecycle.StopSignal != nil {
		out = append(out, refusal{at + ".lifecycle.stopSignal", "the feature gate ContainerStopSignals is off", ""})
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; !b.cfg.EnvFiles && from != nil && from.FileKeyRef != nil {
			out = append(out, refusal{fmt.Sprintf("%s.env[%d].valueFrom.fileKeyRef", at, i), "the feature gate EnvFiles is off", ""})
		}
	}
	out = append(out, b.refusedInProbe(c.LivenessProbe, at+".livenessProbe")...)
	out = append(out, b.refusedInProbe(c.ReadinessProbe, at+".readinessProbe")...)
	return append(out, b.refusedInProbe(c.StartupProbe, at+".startupProbe")...)
}

// refusedRestarts looks at how containers restart, where a feature gate is off:
// without it the pod would run by another policy than it asks for. The policy
// Always of an init container makes it a sidecar, which needs no gate.
func (b *Builder) refusedRestarts(pod *corev1.Pod) []refusal {
	var out []refusal
	look := func(c *corev1.Container, at string, isInit bool) {
		sidecar := isInit && value(c.RestartPolicy) == corev1.ContainerRestartPolicyAlways
		if c.RestartPolicy != nil && !sidecar && !b.cfg.RestartRules {
			out = append(out, refusal{at + ".restartPolicy", "the feature gate ContainerRestartRules is off", ""})
		}
		for i, rule := range c.RestartPolicyRules {
			at := fmt.Sprintf("%s.restartPolicyRules[%d]", at, i)
			switch {
			case !b.cfg.RestartRules:
				out = append(out, refusal{at, "the feature gate ContainerRestartRules is off", ""})
			case rule.Action == corev1.ContainerRestartRuleActionRestartAllContainers && !b.cfg.RestartAllContainers:
				out = append(out, refusal{at + ".action", "the feature gate RestartAllContainersOnContainerExits is off", ""})
			}
		}
	}
	for i := range pod.Spec.InitContainers {
		look(&pod.Spec.InitContainers[i], fmt.Sprintf("spec.initContainers[%d]", i), true)
	}
	for i := range pod.Spec.Containers {
		look(&pod.Spec.Containers[i], fmt.Sprintf("spec.containers[%d]", i), false)
	}
	return out
}

func (b *Builder) refusedInProbe(p *corev1.Probe, at string) []refusal {
	switch {
	case p == nil:
	case !b.cfg.ProbeH2C && p.HTTPGet != nil && p.HTTPGet.Protocol != nil:
		return []refusal{{at + ".httpGet.protocol", "the feature gate H2CContainerProbe is off", ""}}
	case !b.cfg.ProbeGRPCTLS && p.GRPC != nil && p.GRPC.Mode != nil:
		return []refusal{{at + ".grpc.mode", "the feature gate GRPCContainerProbeTLS is off", ""}}
	}
	return nil
}

func refusedMount(c *corev1.Container, m *corev1.VolumeMount, at string) []refusal {
	privileged := c.SecurityContext != nil && value(c.SecurityContext.Privileged)
	if value(m.MountPropagation) == corev1.MountPropagationBidirectional && !privileged {
		return []refusal{{at + "mountPropagation", "Bidirectional is for privileged containers only", ""}}
	}
	return nil
}

// refusedResources looks at the resources by name: what is not known here would
// not be given to the container.
func refusedResources(c *corev1.Container, at string) []refusal {
	var out []refusal
	look := func(kind string, list corev1.ResourceList, harmless ...corev1.ResourceName) {
		for name := range list {
			known := name == corev1.ResourceCPU || name == corev1.ResourceMemory ||
				strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
			if !known && !slices.Contains(harmless, name) {
				out = append(out, refusal{at + kind + "[" + string(name) + "]", notYet, ""})
			}
		}
	}
	look("limits", c.Resources.Limits)
	look("requests", c.Resources.Requests, corev1.ResourceEphemeralStorage) // a matter of placement
	slices.SortFunc(out, func(a, b refusal) int { return strings.Compare(a.field, b.field) })
	return out
}
