package lifecycle

import corev1 "k8s.io/api/core/v1"

// volumesOf are the names of the volumes that one container uses.
func volumesOf(spec *corev1.Container) []string {
	var names []string
	for _, m := range spec.VolumeMounts {
		names = append(names, m.Name)
	}
	for _, dev := range spec.VolumeDevices {
		names = append(names, dev.Name)
	}
	return names
}

// usedVolumes are the pod's volumes that a container uses, in the order of the
// spec. The others are never mounted.
func (d *decision) usedVolumes() []string {
	used := map[string]bool{}
	for _, c := range d.containers {
		if c.spec == nil {
			continue
		}
		for _, name := range volumesOf(c.spec) {
			used[name] = true
		}
	}
	var names []string
	for _, v := range d.pod.Spec.Volumes {
		if used[v.Name] {
			names = append(names, v.Name)
		}
	}
	return names
}

// mountVolumes mounts what is not mounted, all at once.
func (d *decision) mountVolumes() {
	if !d.in.Seen.VolumesLooked {
		return
	}
	for _, name := range d.usedVolumes() {
		if !d.in.Seen.Mounted[name] {
			d.try(Action{Kind: Mount, Key: KeyVolume(name), Volume: name})
		}
	}
}

// volumeIsFar says whether a volume has to wait for something far away: the
// pod gets no sandbox, and so no address, meanwhile. One of a claim is far until
// it is mounted, because only then its attach and its driver are there.
func (d *decision) volumeIsFar() bool {
	claim := map[string]bool{}
	for _, v := range d.pod.Spec.Volumes {
		claim[v.Name] = v.PersistentVolumeClaim != nil || v.Ephemeral != nil
	}
	for _, name := range d.usedVolumes() {
		if d.in.Seen.Far[name] || claim[name] && !d.in.Seen.Mounted[name] {
			return true
		}
	}
	return false
}

// mountsReady says whether all volumes of a container are mounted.
func (d *decision) mountsReady(c *container) bool {
	mine := map[string]bool{}
	for _, name := range volumesOf(c.spec) {
		mine[name] = true
	}
	for _, name := range d.usedVolumes() {
		if mine[name] && (!d.in.Seen.Mounted[name] || d.busy(KeyVolume(name))) {
			return false
		}
	}
	return true
}
