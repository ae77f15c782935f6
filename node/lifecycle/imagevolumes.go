package lifecycle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// volumePull says that the volume could not be mounted because its image could
// not be had, and which image that is. To users it is the pull that failed, as
// with the images of containers (KEP-4639; the node conformance test "should
// fail if image volume is not existing" waits for ImagePullBackOff).
func (d *decision) volumePull(volume string, f Failure) (image string, is bool) {
	if f.Kind != Mount || f.Reason == "FailedMount" {
		return "", false
	}
	for _, v := range d.pod.Spec.Volumes {
		if v.Name == volume && v.Image != nil {
			return v.Image.Reference, true
		}
	}
	return "", false
}

// volumePullEvents are one about the image, and one for each container that can
// not start without it.
func (d *decision) volumePullEvents(volume, image string, f Failure) []Event {
	events := []Event{pullEvent("", image, f)}
	for _, c := range d.containers {
		if c.spec != nil && mounts(c, volume) {
			events = append(events, noStart(c.name, f.Reason))
		}
	}
	return events
}

// imageVolumeWaiting is what to show while the image of a volume can not be had
// that the container mounts; nil: nothing is wrong with them.
func (d *decision) imageVolumeWaiting(c *container) *corev1.ContainerStateWaiting {
	if c.spec == nil {
		return nil
	}
	for _, m := range c.spec.VolumeMounts {
		f, failed := d.in.Seen.Failed[KeyVolume(m.Name)]
		if !failed {
			continue
		}
		if image, pull := d.volumePull(m.Name, f); pull {
			return d.pullWaiting(c, "volume/"+m.Name, "", image, f)
		}
	}
	return nil
}

func mounts(c *container, volume string) bool {
	return slices.ContainsFunc(c.spec.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume })
}
