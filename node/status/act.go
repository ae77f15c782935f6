package status

import (
	"bytes"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// do makes one call and notes what it left behind. Nil means: decide anew.
func (w *Writer) do(ctx context.Context, it *item, j job) error {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.CallTimeout)
	defer cancel()
	switch j.verb {
	case doPatch:
		return w.patch(ctx, it, j)
	case doDelete:
		return w.delete(ctx, it, j)
	case doCreate:
		return w.create(ctx, it, j)
	case doRemind:
		w.remind(it, j)
	case doNothing:
	}
	return nil
}

func (w *Writer) patch(ctx context.Context, it *item, j job) error {
	var pod corev1.Pod
	err := w.parts.API.Patch(types.StrategicMergePatchType).Namespace(it.key.namespace).Resource("pods").Name(it.key.name).
		SubResource("status").Body(j.body).Do(ctx).Into(&pod)
	if err != nil {
		return w.refresh(ctx, it, j.has, err)
	}
	pod.ManagedFields = nil
	w.log.Debug("wrote a pod's status", "pod", it.key.namespace+"/"+it.key.name, "uid", string(pod.UID), "phase", pod.Status.Phase)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !older(&pod, it.has) && it.has != nil && it.has.UID == pod.UID {
		it.has = &pod
	}
	it.inVain = nil
	if left := changesLeft(j, &pod); bytes.Equal(left, j.changes) {
		it.inVain = j.changes
		w.log.Warn("the API server took a status and did not keep it; not trying again until it changes",
			"pod", it.key.namespace+"/"+it.key.name, "uid", string(pod.UID), "patch", string(j.changes))
	}
	if observe := w.parts.Observer.Written; observe != nil && !j.since.IsZero() {
		observe(time.Since(j.since))
	}
	if !it.dirty {
		it.since = time.Time{}
	}
	return nil
}

// changesLeft is what a patch left to change.
func changesLeft(j job, pod *corev1.Pod) []byte {
	to := merged(&pod.Status, j.says, j.now)
	left, err := statusChanges(&pod.Status, &to)
	if err != nil {
		return nil
	}
	return left
}

// delete removes the pod, and only the one of that UID, at once: whatever there
// was of it on the node is gone, or, for a mirror, goes its own way.
func (w *Writer) delete(ctx context.Context, it *item, j job) error {
	now := int64(0)
	err := w.parts.API.Delete().Namespace(it.key.namespace).Resource("pods").Name(it.key.name).
		Body(&metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(j.has.UID))}).
		Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		// Not enough to forget the pod: an API server that has just started says
		// so of pods that its admission has not listed yet. When it is gone, the
		// news of that ends the tries.
		return fmt.Errorf("the news that it is gone is not here yet: %w", err)
	}
	if err != nil {
		return w.refresh(ctx, it, j.has, err)
	}
	w.log.Info("deleted a pod from the API server", "pod", it.key.namespace+"/"+it.key.name, "uid", string(j.has.UID), "reason", j.why)
	w.mu.Lock()
	defer w.mu.Unlock()
	it.deleted = j.has.UID
	if it.key.mirror() && it.has != nil && it.has.UID == j.has.UID {
		it.has = nil // the next one may be made at once
	}
	return nil
}

// create makes the mirror of a static pod.
func (w *Writer) create(ctx context.Context, it *item, j job) error {
	var owner corev1.Node
	if err := w.parts.API.Get().Resource("nodes").Name(w.cfg.NodeName).Do(ctx).Into(&owner); err != nil {
		return fmt.Errorf("no mirror pod without the node %s: %w", w.cfg.NodeName, err)
	}
	if owner.DeletionTimestamp != nil {
		return fmt.Errorf("no mirror pod: node %s is being deleted", w.cfg.NodeName)
	}
	var made corev1.Pod
	err := w.parts.API.Post().Namespace(it.key.namespace).Resource("pods").Body(mirrorOf(j.says.Pod, &owner)).Do(ctx).Into(&made)
	if apierrors.IsAlreadyExists(err) {
		return w.takeExisting(ctx, it, err)
	}
	if err != nil {
		return fmt.Errorf("create mirror pod: %w", err)
	}
	made.ManagedFields = nil
	w.log.Info("made a mirror pod", "pod", it.key.namespace+"/"+it.key.name, "uid", j.says.UID, "mirror", string(made.UID))
	w.found(it, &made)
	return nil
}

// takeExisting takes a mirror that is there before its news came; another pod
// of the name is in the way.
func (w *Writer) takeExisting(ctx context.Context, it *item, cause error) error {
	pod, err := w.get(ctx, it)
	if err != nil && !apierrors.IsForbidden(err) { // one of another node
		return fmt.Errorf("get mirror pod: %w", err)
	}
	if err != nil || !isMirror(pod) {
		return fmt.Errorf("create mirror pod: a pod of this name that is no mirror is in the way; rename the static pod or delete the other: %w", cause)
	}
	w.mu.Lock()
	deleted := it.deleted
	w.mu.Unlock()
	if pod.UID == deleted {
		return fmt.Errorf("create mirror pod: the one before it is not gone yet: %w", cause)
	}
	w.found(it, pod)
	return nil
}

// found notes the mirror that there is.
func (w *Writer) found(it *item, pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !older(pod, it.has) {
		it.has = pod
	}
}

// remind tells the node what it can not know of a static pod.
func (w *Writer) remind(it *item, j job) {
	w.mu.Lock()
	node := w.node
	w.mu.Unlock()
	node.Remind(j.says.UID, &j.has.Status) // not under the lock: it makes the node speak
	w.mu.Lock()
	defer w.mu.Unlock()
	it.reminded = j.has
}

// refresh reads the pod anew where the failure of a call says that the copy at
// hand is not what the server has. It returns nil if that settles the failure.
func (w *Writer) refresh(ctx context.Context, it *item, had *corev1.Pod, cause error) error {
	gone := apierrors.IsNotFound(cause) // which ends what the node may read, too
	if !gone && !apierrors.IsConflict(cause) {
		return cause
	}
	var pod *corev1.Pod
	if !gone {
		var err error
		pod, err = w.get(ctx, it)
		gone = apierrors.IsNotFound(err) || (err == nil && pod.UID != had.UID)
		if err != nil && !gone {
			return fmt.Errorf("%w; and to read it anew: %w", cause, err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case it.has == nil || it.has.UID != had.UID: // the news was faster
	case gone:
		it.has = nil
	case pod.ResourceVersion == it.has.ResourceVersion:
		return cause // the copy was the newest, and yet
	case !older(pod, it.has):
		it.has = pod
	}
	return nil
}

func (w *Writer) get(ctx context.Context, it *item) (*corev1.Pod, error) {
	var pod corev1.Pod
	err := w.parts.API.Get().Namespace(it.key.namespace).Resource("pods").Name(it.key.name).Do(ctx).Into(&pod)
	pod.ManagedFields = nil
	return &pod, err
}
