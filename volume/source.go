package volume

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Source is where a volume of a pod comes from: its entry in the pod's spec,
// and for an entry that names a claim the volume that the claim is bound to.
type Source struct {
	// Volume is the entry of the pod's spec. It has only its name where the
	// spec is gone.
	Volume corev1.Volume
	// PersistentVolume is set for persistentVolumeClaim and ephemeral volumes.
	// It is shared: read only.
	PersistentVolume *corev1.PersistentVolume
	// Claim is the claim's namespace and name; empty without one.
	Claim Claim
	// ReadOnly is set where the pod's entry asks for it (readOnly of
	// persistentVolumeClaim).
	ReadOnly bool
	// ClaimSize is how large the claim says that the volume is
	// (status.capacity), in bytes, as it was when the volume was mounted; 0: not
	// known. Where the PersistentVolume is larger, the node must grow it.
	ClaimSize int64
	// Attached is set for volumes that had to be attached to the node.
	Attached bool
	// SELinuxMount says that the volume's driver can mount it with a label. Set for
	// Mount only.
	SELinuxMount bool
	// SELinuxLabel is what all files of the volume are to have, by a mount option of
	// the plugin's ("-o context"); empty: the volume is mounted without. See [Labels].
	SELinuxLabel string
	// AttachmentID and PublishContext are the name of the VolumeAttachment and
	// what the driver's controller left there for the node. Set for Mount only.
	AttachmentID   string
	PublishContext map[string]string
}

// Recorded is a volume of a pod's claim that was mounted, or at least tried to.
type Recorded struct {
	UID string // of the pod
	Source
}

// Claim names a PersistentVolumeClaim.
type Claim struct{ Namespace, Name string }

// Name is the last part of the volume's directory: as with the stock kubelet,
// that of the PersistentVolume if there is one, else that of the pod's entry.
func (s Source) Name() string {
	if s.PersistentVolume != nil {
		return s.PersistentVolume.Name
	}
	return s.Volume.Name
}

// Block says that the pod gets a device, not a file system: volumeMode Block.
func (s Source) Block() bool {
	pv := s.PersistentVolume
	return pv != nil && pv.Spec.VolumeMode != nil && *pv.Spec.VolumeMode == corev1.PersistentVolumeBlock
}

// Claims finds what a pod's claims are bound to. Safe for concurrent use.
type Claims interface {
	// Claimed blocks until the volume is known and may be mounted on this node
	// (attached, where its driver wants that), ctx at the latest. It is called
	// for entries with persistentVolumeClaim or ephemeral. Its errors may answer
	// Reason, RetryAfter and Fatal; what is worth waiting for is an error that
	// answers RetryAfter.
	Claimed(ctx context.Context, pod *corev1.Pod, v corev1.Volume) (Source, error)
}

// namesClaim says whether an entry of a pod's spec names a claim.
func namesClaim(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil }
