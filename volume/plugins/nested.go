package plugins

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// mountPoints makes the directories in the volume where containers mount other
// volumes of theirs: the volume is read-only for them, so the runtime can not.
func (w writer) mountPoints(volume string, pod *corev1.Pod) error {
	nested, err := nestedIn(volume, pod)
	if err != nil {
		return err
	}
	for _, name := range nested {
		if info, err := w.root.Stat(name); err == nil && info.IsDir() {
			continue
		}
		if err := w.root.MkdirAll(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("unable to create nested volume mountpoints: %w", err)
		}
		for dir := name; dir != "."; dir = path.Dir(dir) {
			if err := w.dir(dir); err != nil {
				return fmt.Errorf("unable to create nested volume mountpoints: %w", err)
			}
		}
	}
	return nil
}

// nestedIn lists the mount paths of other volumes right below those of one
// volume, in any container, relative to it.
func nestedIn(volume string, pod *corev1.Pod) ([]string, error) {
	var list []string
	for _, mounts := range allMounts(pod) {
		var all, mine []string
		for _, m := range mounts {
			at := path.Clean(m.MountPath)
			all = append(all, at)
			if m.Name == volume {
				mine = append(mine, at)
			}
		}
		slices.Sort(all)
		for _, at := range mine {
			if strings.HasPrefix(at, "../") {
				return nil, fmt.Errorf("invalid container mount point %v", at)
			}
			list = append(list, below(at, all)...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// below are the paths below at, without those below another of them. The list
// is sorted.
func below(at string, all []string) (list []string) {
	prefix := strings.TrimSuffix(at, "/") + "/"
	for _, p := range all {
		inner, ok := strings.CutPrefix(p, prefix)
		if !ok || inner == "" {
			continue
		}
		if !slices.ContainsFunc(list, func(outer string) bool { return inner == outer || strings.HasPrefix(inner, outer+"/") }) {
			list = append(list, inner)
		}
	}
	return list
}

func allMounts(pod *corev1.Pod) [][]corev1.VolumeMount {
	var all [][]corev1.VolumeMount
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		all = append(all, c.VolumeMounts)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		all = append(all, c.VolumeMounts)
	}
	return all
}
