package lifecycle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// reasonFailedMount is that of each failed mount which is no failed pull.
const reasonFailedMount = "FailedMount"

// volumePull says that the volume could not be mounted because its image could
// not be had, and which image that is. To users it is the pull that failed, as
// with the images of containers (KEP-4639; the node conformance test "should
// fail if image volume is not existing" waits for ImagePullBackOff).
func (d *decision) volumePull(volume string, f Failure) (image string, is bool) {
	if f.Kind != Mount || f.Reason == reasonFailedMount {
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
		if c.spec != nil && slices.Contains(volumesOf(c.spec), volume) {
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
	for _, name := range volumesOf(c.spec) {
		f, failed := d.in.Seen.Failed[KeyVolume(name)]
		if !failed {
			continue
		}
		if image, pull := d.volumePull(name, f); pull {
			return d.pullWaiting(c, "volume/"+name, "", image, f)
		}
	}
	return nil
}
