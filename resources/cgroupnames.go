package resources

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// CgroupDriver says who owns the cgroup tree, and so how cgroups are named.
type CgroupDriver string

// The drivers.
const (
	Cgroupfs CgroupDriver = "cgroupfs"
	Systemd  CgroupDriver = "systemd"
)

// kubepods is the cgroup of all pods of a node.
const kubepods = "kubepods"

// CgroupNames names the cgroups of pods. The zero value names them for
// cgroupfs below the root of the tree.
type CgroupNames struct {
	Driver CgroupDriver
	// Root is the cgroup that holds kubepods, as a path of plain names such as
	// "/agents/one" for either driver; empty or "/": the root of the tree.
	Root string
}

// Validate refuses unknown drivers and roots that are not clean absolute paths.
func (n CgroupNames) Validate() error {
	switch n.Driver {
	case "", Cgroupfs, Systemd:
	default:
		return fmt.Errorf("cgroup driver %q: must be %q or %q", n.Driver, Cgroupfs, Systemd)
	}
	if n.Root != "" && (!path.IsAbs(n.Root) || path.Clean(n.Root) != n.Root) {
		return fmt.Errorf("cgroup root %q: must be a clean absolute path", n.Root)
	}
	return nil
}

// Parent is the pod's cgroup in the form that a runtime of this driver takes: a
// path for cgroupfs ("/kubepods/burstable/podUID"), a slice name for systemd
// ("kubepods-burstable-podUID.slice" with "_" for the "-" in the UID).
func (n CgroupNames) Parent(pod *corev1.Pod) string {
	full := n.Path(string(pod.UID), QOSClass(pod))
	if n.Driver == Systemd {
		return path.Base(full)
	}
	return full
}

// Path is the pod's cgroup below the mount point of the cgroup tree, for either
// driver ("/kubepods.slice/kubepods-besteffort.slice/..." for systemd).
func (n CgroupNames) Path(uid string, class corev1.PodQOSClass) string {
	return n.path(append(n.parent(class), "pod"+uid))
}

// Candidates are the paths where a pod of that UID may stand, for each class,
// when its spec is gone.
func (n CgroupNames) Candidates(uid string) []string {
	return []string{
		n.Path(uid, corev1.PodQOSGuaranteed),
		n.Path(uid, corev1.PodQOSBurstable),
		n.Path(uid, corev1.PodQOSBestEffort),
	}
}

// parent holds the plain names from the root to the pods of that class;
// guaranteed pods stand directly in kubepods.
func (n CgroupNames) parent(class corev1.PodQOSClass) []string {
	names := append(strings.FieldsFunc(n.Root, func(r rune) bool { return r == '/' }), kubepods)
	if class != corev1.PodQOSGuaranteed {
		names = append(names, strings.ToLower(string(class)))
	}
	return names
}

func (n CgroupNames) path(names []string) string {
	if n.Driver != Systemd {
		return "/" + path.Join(names...)
	}
	// In a slice name "-" separates levels, so it may not be part of one.
	slices := make([]string, len(names))
	prefix := ""
	for i, name := range names {
		prefix += strings.ReplaceAll(name, "-", "_")
		slices[i] = prefix + ".slice"
		prefix += "-"
	}
	return "/" + path.Join(slices...)
}
