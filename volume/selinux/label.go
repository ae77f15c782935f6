package selinux

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// FileLabel is the label that files of a container with those options have, from
// the host's label for files of containers ("USER:ROLE:TYPE:LEVEL"). Role and type
// are of its processes and not of its files. Empty: there is no telling, since
// the runtime chooses the level.
func FileLabel(base string, o *corev1.SELinuxOptions) (string, error) {
	if o == nil || o.Level == "" {
		return "", nil
	}
	parts := strings.SplitN(base, ":", 4)
	if len(parts) != 4 {
		return "", fmt.Errorf("the host's label for files of containers %q has not the form USER:ROLE:TYPE:LEVEL", base)
	}
	for _, part := range []string{o.User, o.Level} {
		if strings.ContainsAny(part, "\"' \t\n\x00") {
			return "", fmt.Errorf("%q can not be part of a label", part)
		}
	}
	if o.User != "" {
		parts[0] = o.User
	}
	parts[3] = o.Level
	return strings.Join(parts, ":"), nil
}

// MismatchError says that containers of one pod would need different labels.
type MismatchError struct{ Volume, One, Other string }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("conflicting SELinux labels of volume %s: %q and %q", e.Volume, e.One, e.Other)
}

// Wanted is the label that the volume needs for all containers of the pod that
// mount it, whatever the pod's policy; empty: none, or there is no telling.
func Wanted(base string, pod *corev1.Pod, volumeName string) (string, error) {
	var labels []string
	for _, c := range users(pod, volumeName) {
		label, err := FileLabel(base, effective(pod, c))
		if err != nil {
			return "", fmt.Errorf("container %q: %w", c.Name, err)
		}
		labels = append(labels, label)
	}
	slices.Sort(labels)
	labels = slices.Compact(labels)
	switch len(labels) {
	case 0:
		return "", nil
	case 1:
		return labels[0], nil
	}
	return "", &MismatchError{volumeName, labels[0], labels[1]}
}

// users are the containers that mount the volume. Ephemeral ones come later, and
// must do with what there is.
func users(pod *corev1.Pod, volumeName string) (list []corev1.Container) {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volumeName }) {
			list = append(list, c)
		}
	}
	return list
}

// effective are the container's options, else the pod's.
func effective(pod *corev1.Pod, c corev1.Container) *corev1.SELinuxOptions {
	if c.SecurityContext != nil && c.SecurityContext.SELinuxOptions != nil {
		return c.SecurityContext.SELinuxOptions
	}
	if pod.Spec.SecurityContext != nil {
		return pod.Spec.SecurityContext.SELinuxOptions
	}
	return nil
}

// recursive says that the pod wants its volumes relabeled file by file.
func recursive(pod *corev1.Pod) bool {
	s := pod.Spec.SecurityContext
	return s != nil && s.SELinuxChangePolicy != nil && *s.SELinuxChangePolicy == corev1.SELinuxChangePolicyRecursive
}
