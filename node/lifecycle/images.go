package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The stock kubelet's words for images.
const (
	reasonImagePullBackOff = "ImagePullBackOff"
	reasonImageNeverPull   = "ErrImageNeverPull"
	maxShowFailure         = 10 * time.Second
)

// notRetriedQuickly are reasons that stay on show while waiting: no pull is
// backing off, there is nothing to pull.
var notRetriedQuickly = [...]string{reasonImageNeverPull, "InvalidImageName", "ImageInspectError", reasonImagePullBackOff}

// pullImages makes the images present of all containers that are to start,
// main containers included while the init containers run.
func (d *decision) pullImages() {
	for _, c := range d.containers {
		if c.spec == nil || !d.wantsStart(c) || d.imageReady(c) {
			continue
		}
		if flight, taken := d.in.Busy[KeyImage(c.name)]; taken {
			if flight.Image != c.spec.Image {
				d.cancel(KeyImage(c.name))
			}
			continue
		}
		if (d.repulls(c) || d.startFailed(c)) && !d.startDue(c) {
			continue // asked for just before the start, whatever becomes of the image until then
		}
		next := c.nextRestarts()
		if d.try(Action{Kind: Pull, Key: KeyImage(c.name), Container: c.name, Image: c.spec.Image}) {
			c.mem.PulledFor = next
		}
	}
}

// imageReady says whether the container's image is there for its next start.
func (d *decision) imageReady(c *container) bool {
	image, pulled := d.in.Seen.Images[c.name]
	pulling := d.busy(KeyImage(c.name)) || d.planned(KeyImage(c.name))
	return pulled && image.Spec == c.spec.Image && !pulling && !d.repulls(c)
}

// repulls says that policy Always asks for a pull before this start although
// there was one before.
func (d *decision) repulls(c *container) bool {
	if c.spec.ImagePullPolicy != corev1.PullAlways || !c.mem.Ran {
		return false
	}
	_, failed := d.in.Seen.Failed[KeyImage(c.name)]
	return failed || c.mem.PulledFor < c.nextRestarts()
}

// startFailed says that the container's last start failed with this image.
func (d *decision) startFailed(c *container) bool {
	return c.mem.StartFailure != nil && c.mem.StartFailure.Image == c.spec.Image
}

// imageWaiting is what to show while an image can not be had; nil: nothing is
// wrong with it. At first it is why the pull failed, later that it backs off.
func (d *decision) imageWaiting(c *container) *corev1.ContainerStateWaiting {
	f, failed := d.in.Seen.Failed[KeyImage(c.name)]
	if !failed || !d.pullFailedFor(c) {
		return d.imageVolumeWaiting(c)
	}
	return d.pullWaiting(c, "image/"+c.name, c.name, c.spec.Image, f)
}

// pullWaiting is of one image, whose events are about that container; empty: the
// pod. cause names the image among those of the pod.
func (d *decision) pullWaiting(c *container, cause, about, image string, f Failure) *corev1.ContainerStateWaiting {
	plain := &corev1.ContainerStateWaiting{Reason: f.Reason, Message: f.Message}
	if f.Fatal || slices.Contains(notRetriedQuickly[:], f.Reason) || f.RetryAt.IsZero() {
		return plain
	}
	turn := f.At.Add(min(f.RetryAt.Sub(f.At)/2, maxShowFailure))
	if d.now.Before(turn) {
		d.wakeAt(turn)
		return plain
	}
	backoff := backoffPullMessage(image)
	d.tell("BackOff/"+cause,
		Event{Type: EventNormal, Reason: "BackOff", Message: backoff, Container: about})
	d.tell("BackOff/"+cause+"/"+c.name, noStart(c.name, reasonImagePullBackOff))
	message := backoff + ": " + f.Reason + ": " + f.Message
	return &corev1.ContainerStateWaiting{Reason: reasonImagePullBackOff, Message: message}
}

func backoffPullMessage(image string) string { return `Back-off pulling image "` + image + `"` }

// pullFailedAfter says that the image could not be had for the start that is
// to follow the one that failed at that time.
func (d *decision) pullFailedAfter(c *container, start time.Time) bool {
	f, failed := d.in.Seen.Failed[KeyImage(c.name)]
	return failed && d.pullFailedFor(c) && f.At.After(start)
}

// pullFailedFor says that the failure on record is of the image in the spec.
func (d *decision) pullFailedFor(c *container) bool {
	asked, known := d.mem.Asked[KeyImage(c.name)]
	return !known || asked.What == c.spec.Image
}
