package expand

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// notRequired is the annotation of claims whose volumes need no growth on nodes
// (1.37).
const notRequired = "volume.kubernetes.io/node-expansion-not-required"

// plan is what to do about a claim.
type plan int

const (
	// leave: there is nothing to do.
	leave plan = iota
	// grow: the claim waits for this node.
	grow
	// growHere: the claim has its size, since another node was quicker.
	growHere
	// finish: the volume is as big as it shall be, and the claim does not know.
	finish
)

// mayGrow says whether the claim gives a reason to read its volume. here is the
// volume's size on this node; 0: not known.
func mayGrow(claim *corev1.PersistentVolumeClaim, here int64) bool {
	return waits(claim) || shared(claim) && here > 0 && told(claim) > here
}

// decide says what to do, where desired is the size of the PersistentVolume. A
// size that is not known here is the one of the claim.
func decide(claim *corev1.PersistentVolumeClaim, desired, here int64) plan {
	known := told(claim)
	if here == 0 {
		here = known
	}
	switch {
	case waits(claim) && here >= desired:
		return finish
	case waits(claim):
		return grow
	case shared(claim) && status(claim) == "" && known >= desired && here < desired:
		return growHere
	}
	return leave
}

func status(claim *corev1.PersistentVolumeClaim) corev1.ClaimResourceStatus {
	return claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage]
}

// waits says that the controllers are done with the volume, and its nodes are not.
func waits(claim *corev1.PersistentVolumeClaim) bool {
	switch status(claim) {
	case corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimNodeResizeInProgress:
		return true
	case "":
		return hasCondition(claim, corev1.PersistentVolumeClaimFileSystemResizePending)
	}
	return false
}

func hasCondition(claim *corev1.PersistentVolumeClaim, kind corev1.PersistentVolumeClaimConditionType) bool {
	return slices.ContainsFunc(claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

// shared says that each node that has the volume mounted grows it.
func shared(claim *corev1.PersistentVolumeClaim) bool {
	_, opted := claim.Annotations[notRequired]
	return !opted && slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteMany)
}

// told is the size that users see.
func told(claim *corev1.PersistentVolumeClaim) int64 {
	return claim.Status.Capacity.Storage().Value()
}
