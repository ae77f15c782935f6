package claims

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
)

// attachTime is how long a pod waits for an attach until it is told that it
// waits, as with the stock kubelet. Then it waits anew.
const attachTime = 2 * time.Minute

// attachRetry is how soon a pod waits anew: the time between two waits, in which
// an attach is not noticed, must not grow (k/k#106853).
const attachRetry = time.Second

// attached waits until the volume is attached to this node, where its driver
// wants that, and adds what the attachment says.
func (c *Claims) attached(ctx context.Context, pod *corev1.Pod, s volume.Source) (volume.Source, error) {
	driver, err := c.ask(ctx, s.PersistentVolume)
	s.SELinuxMount = driver.seLinuxMount
	if err != nil || !driver.attach {
		return s, err
	}
	s.Attached = true
	name := uniqueName(s.PersistentVolume)
	if c.use(name, pod.UID) {
		c.parts.Kick() // the controllers attach anew only what the node says it will use
	}
	if err := c.await(ctx, name, s.PersistentVolume); err != nil {
		return volume.Source{}, err
	}
	return c.attachment(ctx, s)
}

// asked is what a driver's object says of its volumes.
type asked struct{ attach, seLinuxMount bool }

// ask asks the driver's object. A driver without one wants its volumes attached.
func (c *Claims) ask(ctx context.Context, pv *corev1.PersistentVolume) (asked, error) {
	if pv.Spec.CSI == nil || c.parts.Storage == nil {
		return asked{}, nil
	}
	driver := &storagev1.CSIDriver{}
	err := get(ctx, c.parts.Storage.Get().Resource("csidrivers").Name(pv.Spec.CSI.Driver), driver)
	switch {
	case apierrors.IsNotFound(err):
		return asked{attach: true}, nil
	case err != nil:
		return asked{}, fmt.Errorf("whether volume %q must be attached: CSIDriver %s: %w", pv.Name, pv.Spec.CSI.Driver, err)
	}
	spec := driver.Spec
	return asked{
		attach:       spec.AttachRequired == nil || *spec.AttachRequired,
		seLinuxMount: spec.SELinuxMount != nil && *spec.SELinuxMount,
	}, nil
}

// await returns once the API server has seen that the node uses the volume and
// the attach-detach controller said that it is attached.
func (c *Claims) await(ctx context.Context, name corev1.UniqueVolumeName, pv *corev1.PersistentVolume) error {
	limit, cancel := context.WithTimeout(ctx, attachTime)
	defer cancel()
	for {
		changed := c.changed() // before looking, so that no change is missed
		node, err := c.parts.Node(limit)
		if err == nil && isAttached(node, name) {
			return nil
		}
		select {
		case <-changed:
		case <-limit.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				return unattached(fmt.Errorf("whether volume %s is attached: %w", name, err))
			}
			return unattached(c.whyNot(ctx, name, pv))
		}
	}
}

// exhausted is gRPC's code for a driver that has no room for one more volume.
const exhausted = 8

// whyNot says what is known of an attach that does not come.
func (c *Claims) whyNot(ctx context.Context, name corev1.UniqueVolumeName, pv *corev1.PersistentVolume) error {
	err := fmt.Errorf("volume %s has not been attached to the node yet: not in node.status.volumesAttached after %v", name, attachTime)
	found := &storagev1.VolumeAttachment{}
	id := attachmentName(pv.Spec.CSI.VolumeHandle, pv.Spec.CSI.Driver, c.cfg.NodeName)
	if get(ctx, c.parts.Storage.Get().Resource("volumeattachments").Name(id), found) != nil || found.Status.AttachError == nil {
		return err // what went wrong with the attach is all that would have been told
	}
	failed := found.Status.AttachError
	if failed.ErrorCode != nil && *failed.ErrorCode == exhausted && c.parts.Exhausted != nil {
		c.parts.Exhausted(pv.Spec.CSI.Driver)
	}
	return fmt.Errorf("%w: %s", err, failed.Message)
}

func unattached(err error) error { return reasoned.New("FailedMount", err).After(attachRetry) }

func isAttached(node *corev1.Node, name corev1.UniqueVolumeName) bool {
	return node != nil && slices.Contains(node.Status.VolumesInUse, name) &&
		slices.ContainsFunc(node.Status.VolumesAttached, func(a corev1.AttachedVolume) bool { return a.Name == name })
}

// attachment adds what the driver's controller left for the node.
func (c *Claims) attachment(ctx context.Context, s volume.Source) (volume.Source, error) {
	csi := s.PersistentVolume.Spec.CSI
	s.AttachmentID = attachmentName(csi.VolumeHandle, csi.Driver, c.cfg.NodeName)
	found := &storagev1.VolumeAttachment{}
	if err := get(ctx, c.parts.Storage.Get().Resource("volumeattachments").Name(s.AttachmentID), found); err != nil {
		return volume.Source{}, fmt.Errorf("VolumeAttachment %s: %w", s.AttachmentID, err)
	}
	if !found.Status.Attached {
		return volume.Source{}, unattached(fmt.Errorf("VolumeAttachment %s: not attached yet", s.AttachmentID))
	}
	s.PublishContext = found.Status.AttachmentMetadata
	return s, nil
}

// attachmentName is what the attach-detach controller names the object.
func attachmentName(handle, driver, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+driver+node)))
}
