package podspec

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime"
)

// maskedPaths and readonlyPaths are what the stock kubelet hides from and
// protects against containers that are not privileged.
func maskedPaths() []string {
	return []string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi",
		"/sys/firmware", "/sys/devices/virtual/powercap",
	}
}

func readonlyPaths() []string {
	return []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}

func namespaces(pod *corev1.Pod, user *runtime.UserNamespace) runtime.Namespaces {
	ns := runtime.Namespaces{
		User:    user,
		Network: runtime.NamespacePod,
		PID:     runtime.NamespaceContainer,
		IPC:     runtime.NamespacePod,
	}
	if pod.Spec.HostNetwork {
		ns.Network = runtime.NamespaceNode
	}
	if pod.Spec.HostIPC {
		ns.IPC = runtime.NamespaceNode
	}
	switch {
	case pod.Spec.HostPID:
		ns.PID = runtime.NamespaceNode
	case value(pod.Spec.ShareProcessNamespace):
		ns.PID = runtime.NamespacePod
	}
	return ns
}

// sandboxSecurity is the security context of the sandbox itself. Its only
// process does nothing, so it is always confined by the runtime's seccomp
// profile, whatever the containers ask for.
func sandboxSecurity(req podactor.SandboxSpecRequest) runtime.SandboxSecurity {
	pod := req.Pod
	out := runtime.SandboxSecurity{
		Namespaces: namespaces(pod, req.UserNamespace),
		Privileged: hasPrivileged(pod),
		Seccomp:    &runtime.Profile{Type: runtime.ProfileRuntimeDefault},
	}
	if sc := pod.Spec.SecurityContext; sc != nil {
		out.SELinux = selinux(sc.SELinuxOptions)
		out.RunAsUser = sc.RunAsUser
		out.RunAsGroup = sc.RunAsGroup
		out.SupplementalGroups = supplementalGroups(sc)
		out.SupplementalGroupsPolicy = string(value(sc.SupplementalGroupsPolicy))
	}
	return out
}

func hasPrivileged(pod *corev1.Pod) bool {
	privileged := func(c corev1.Container) bool {
		return c.SecurityContext != nil && value(c.SecurityContext.Privileged)
	}
	return slices.ContainsFunc(pod.Spec.Containers, privileged) ||
		slices.ContainsFunc(pod.Spec.InitContainers, privileged) ||
		slices.ContainsFunc(pod.Spec.EphemeralContainers, func(c corev1.EphemeralContainer) bool {
			return privileged(corev1.Container(c.EphemeralContainerCommon))
		})
}

// effective is the container's security context with the pod's where the
// container says nothing. It is never nil.
func effective(pod *corev1.Pod, c *corev1.Container) *corev1.SecurityContext {
	var sc corev1.SecurityContext
	if c.SecurityContext != nil {
		sc = *c.SecurityContext
	}
	if all := pod.Spec.SecurityContext; all != nil {
		inherit(&sc.SELinuxOptions, all.SELinuxOptions)
		inherit(&sc.RunAsUser, all.RunAsUser)
		inherit(&sc.RunAsGroup, all.RunAsGroup)
		inherit(&sc.RunAsNonRoot, all.RunAsNonRoot)
		inherit(&sc.SeccompProfile, all.SeccompProfile)
	}
	return &sc
}

func inherit[T any](own **T, pods *T) {
	if *own == nil {
		*own = pods
	}
}

func (b *Builder) containerSecurity(req podactor.ContainerSpecRequest, c *corev1.Container) (runtime.ContainerSecurity, error) {
	pod := req.Pod
	if ownUsers(pod) && req.UserNamespace == nil {
		return runtime.ContainerSecurity{}, errNoUsers
	}
	sc := effective(pod, c)
	if value(sc.RunAsNonRoot) {
		if err := checkNonRoot(sc, req.ImageUser); err != nil {
			return runtime.ContainerSecurity{}, fmt.Errorf("%w (pod: %q, container: %s)", err, podName(pod), c.Name)
		}
	}
	seccomp, err := b.seccomp(sc.SeccompProfile)
	if err != nil {
		return runtime.ContainerSecurity{}, err
	}
	apparmor, err := appArmor(pod, c)
	if err != nil {
		return runtime.ContainerSecurity{}, err
	}
	out := runtime.ContainerSecurity{
		Privileged:      value(sc.Privileged),
		Namespaces:      targeted(namespaces(pod, req.UserNamespace), req.TargetID),
		SELinux:         selinux(sc.SELinuxOptions),
		RunAsUser:       sc.RunAsUser,
		RunAsGroup:      sc.RunAsGroup,
		ReadonlyRootfs:  value(sc.ReadOnlyRootFilesystem),
		NoNewPrivileges: sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation,
		Seccomp:         seccomp,
		AppArmor:        apparmor,
	}
	if value(sc.ProcMount) != corev1.UnmaskedProcMount {
		out.MaskedPaths = append(maskedPaths(), b.cfg.ExtraMaskedPaths...)
		out.ReadonlyPaths = readonlyPaths()
	}
	if caps := sc.Capabilities; caps != nil {
		out.AddCapabilities = capabilities(caps.Add)
		out.DropCapabilities = capabilities(caps.Drop)
	}
	if all := pod.Spec.SecurityContext; all != nil {
		out.SupplementalGroups = supplementalGroups(all)
		out.SupplementalGroupsPolicy = string(value(all.SupplementalGroupsPolicy))
	}
	nameUser(&out, req.ImageUser)
	return out, nil
}

// targeted lets a container that has its processes for itself see those of
// another one.
func targeted(ns runtime.Namespaces, containerID string) runtime.Namespaces {
	if containerID != "" && ns.PID == runtime.NamespaceContainer {
		ns.PID, ns.TargetID = runtime.NamespaceTarget, containerID
	}
	return ns
}

// podName names a pod in messages as the stock kubelet does.
func podName(pod *corev1.Pod) string {
	return fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID)
}

// checkNonRoot refuses what runs as root or may do so: the user is the spec's,
// else the image's, and a name tells nothing about its number.
func checkNonRoot(sc *corev1.SecurityContext, imageUser string) error {
	if sc.RunAsUser != nil {
		if *sc.RunAsUser == 0 {
			return errors.New("container's runAsUser breaks non-root policy")
		}
		return nil
	}
	uid, isNumber := imageUID(imageUser)
	switch {
	case imageUser == "" || isNumber && uid == 0:
		return errors.New("container has runAsNonRoot and image will run as root")
	case !isNumber:
		return fmt.Errorf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root", imageUser)
	}
	return nil
}

// nameUser names the image's user where the spec names none, as the stock
// kubelet does: alone, without the group that the image may name with it.
func nameUser(out *runtime.ContainerSecurity, imageUser string) {
	if out.RunAsUser != nil {
		return
	}
	if imageUser == "" {
		imageUser = "0"
	}
	if uid, ok := imageUID(imageUser); ok {
		out.RunAsUser = &uid
		return
	}
	out.RunAsUserName, _, _ = strings.Cut(imageUser, ":")
}

// imageUID reads the number in an image's "user[:group]"; false for a name.
func imageUID(user string) (int64, bool) {
	user, _, _ = strings.Cut(user, ":")
	uid, err := strconv.ParseInt(user, 10, 64)
	return uid, err == nil
}

func selinux(o *corev1.SELinuxOptions) *runtime.SELinuxOptions {
	if o == nil {
		return nil
	}
	return &runtime.SELinuxOptions{User: o.User, Role: o.Role, Type: o.Type, Level: o.Level}
}

// supplementalGroups are the groups of all of the pod's processes; fsGroup is
// one of them, so that they reach the volumes that belong to it.
func supplementalGroups(sc *corev1.PodSecurityContext) []int64 {
	groups := slices.Clone(sc.SupplementalGroups)
	if sc.FSGroup != nil {
		groups = append(groups, *sc.FSGroup)
	}
	return groups
}

func capabilities(in []corev1.Capability) []string {
	out := make([]string, len(in))
	for i, c := range in {
		out[i] = string(c)
	}
	return out
}
