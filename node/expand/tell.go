package expand

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"nodekit.dev/volume"
)

// requestTime bounds one request.
const requestTime = 30 * time.Second

func (f *followed) get(ctx context.Context, into runtime.Object, request *rest.Request) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	return request.Do(ctx).Into(into)
}

// answer tells users, and the claim where it failed, how a try went.
func (f *followed) answer(ctx context.Context, claim *corev1.PersistentVolumeClaim, g Growth) error {
	name := g.Volume.PersistentVolume.Name
	if g.Err == nil {
		f.complained = ""
		f.tell(claim, g.Volume, corev1.EventTypeNormal, "FileSystemResizeSuccessful", resizeMessage("succeeded", name, f.cfg.NodeName))
		return nil
	}
	f.complain(nil, g.Volume, "VolumeResizeFailed", fmt.Sprintf("NodeExpandVolume failed for volume %q : %v", name, g.Err))
	infeasible := kind(g.Err) == Infeasible || kind(g.Err) == Final && f.failedFinal && asksAnother(claim, g.Size)
	switch {
	case infeasible:
		return f.failed(ctx, claim, g.Err, corev1.PersistentVolumeClaimNodeResizeInfeasible)
	case kind(g.Err) == Final:
		return f.failed(ctx, claim, g.Err, "")
	}
	return nil
}

// asksAnother says that somebody changed the claim while its growth fails: the
// controllers shall go on with what it asks for now.
func asksAnother(claim *corev1.PersistentVolumeClaim, size int64) bool {
	return claim.Spec.Resources.Requests.Storage().Value() != size
}

func resizeMessage(how, pv, why string) string {
	return fmt.Sprintf("MountVolume.NodeExpandVolume %s for volume %q %s", how, pv, why)
}

// complain tells users of a problem, once.
func (f *followed) complain(claim *corev1.PersistentVolumeClaim, use volume.Recorded, reason, message string) {
	if f.complained != reason+message {
		f.complained = reason + message
		f.tell(claim, use, corev1.EventTypeWarning, reason, message)
	}
}

// tell tells the pod's users, and those of the claim where it is given.
func (f *followed) tell(claim *corev1.PersistentVolumeClaim, use volume.Recorded, eventType, reason, message string) {
	f.parts.Event(Event{PodUID: use.UID, Type: eventType, Reason: reason, Message: message})
	if claim != nil {
		f.parts.Event(Event{Claim: &corev1.ObjectReference{
			APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			ResourceVersion: claim.ResourceVersion,
		}, Type: eventType, Reason: reason, Message: message})
	}
}

type object = map[string]any

// inProgress marks the claim. Who reads an old claim does not get through.
func (f *followed) inProgress(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if status(claim) == corev1.PersistentVolumeClaimNodeResizeInProgress {
		return nil
	}
	return f.patch(ctx, claim, object{
		"metadata": object{"resourceVersion": claim.ResourceVersion},
		"status":   object{"allocatedResourceStatuses": object{"storage": corev1.PersistentVolumeClaimNodeResizeInProgress}},
	})
}

// resizing are the conditions of a claim whose size changes.
func resizing() []corev1.PersistentVolumeClaimConditionType {
	return []corev1.PersistentVolumeClaimConditionType{
		corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending,
		corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError,
	}
}

// finished gives the claim its size and takes away what says that it changes.
func (f *followed) finished(ctx context.Context, claim *corev1.PersistentVolumeClaim, size int64) error {
	var gone []object
	for _, kind := range resizing() {
		if hasConditionOf(claim, kind) {
			gone = append(gone, object{"$patch": "delete", "type": kind})
		}
	}
	change := object{"allocatedResourceStatuses": object{"storage": nil}}
	if len(gone) > 0 {
		change["conditions"] = gone
	}
	if told(claim) < size {
		change["capacity"] = object{"storage": resource.NewQuantity(size, resource.BinarySI)}
	}
	return f.patch(ctx, claim, object{"metadata": object{"resourceVersion": claim.ResourceVersion}, "status": change})
}

func hasConditionOf(claim *corev1.PersistentVolumeClaim, kind corev1.PersistentVolumeClaimConditionType) bool {
	for _, c := range claim.Status.Conditions {
		if c.Type == kind {
			return true
		}
	}
	return false
}

// failed writes the error into the claim, unless one stands there, and the
// status unless it is empty.
func (f *followed) failed(ctx context.Context, claim *corev1.PersistentVolumeClaim, err error, to corev1.ClaimResourceStatus) error {
	change := object{}
	if !hasCondition(claim, corev1.PersistentVolumeClaimNodeResizeError) {
		change["conditions"] = []corev1.PersistentVolumeClaimCondition{{
			Type: corev1.PersistentVolumeClaimNodeResizeError, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.Now(), Message: fmt.Sprintf("failed to expand pvc with %v", err),
		}}
	}
	if to != "" && status(claim) != to {
		change["allocatedResourceStatuses"] = object{"storage": to}
	}
	if len(change) == 0 {
		return nil
	}
	return f.patch(ctx, claim, object{"status": change})
}

// patch writes the claim's status; the claim is as written then.
func (f *followed) patch(ctx context.Context, claim *corev1.PersistentVolumeClaim, change object) error {
	body, err := json.Marshal(change)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	written := &corev1.PersistentVolumeClaim{}
	err = f.parts.Core.Patch(types.StrategicMergePatchType).Namespace(claim.Namespace).Resource("persistentvolumeclaims").
		Name(claim.Name).SubResource("status").Body(body).Do(ctx).Into(written)
	if err != nil {
		return fmt.Errorf("status of PVC %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	*claim = *written
	return nil
}
