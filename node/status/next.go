package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

// verb is what to do about a pod next.
type verb string

// The verbs; doNothing waits for news.
const (
	doNothing verb = ""
	doPatch   verb = "patch"
	doDelete  verb = "delete"
	doCreate  verb = "create"
	doRemind  verb = "remind" // tell the node of its static pod's mirror
)

// view is all that the next step depends on: what the node says, and what the
// API server has.
type view struct {
	now time.Time
	// mirror says that this is about a static pod and its mirror.
	mirror bool
	// says is what the node said last; nil: nothing. Of static pods of one name
	// it is the one that is there now.
	says *node.StatusUpdate
	// has is the API server's copy; nil: there is none.
	has *corev1.Pod
	// deleted is the UID whose deletion the API server has accepted.
	deleted types.UID
	// inVain are changes that the server took and did not make.
	inVain []byte
	// reminded is the copy of the mirror that the node was told of; nil: none.
	reminded *corev1.Pod
	// synced says that all pods that the API server has were told.
	synced bool
	// unwanted says of a mirror that no static pod of it is or will be there.
	unwanted bool
}

// step is one call to make.
type step struct {
	verb verb
	body []byte
	// changes is the part of body about the status.
	changes json.RawMessage
	// why, for the log.
	why string
}

// next says what to do about a pod. It is a pure function.
func next(v view) (step, error) {
	if v.mirror {
		return nextForMirror(v)
	}
	switch {
	case v.says == nil || v.has == nil:
		return step{}, nil
	case v.has.DeletionTimestamp == nil || !terminal(v.has.Status.Phase):
		return v.patch()
	case v.says.Phase == lifecycle.Finished && v.deleted != v.has.UID:
		return step{verb: doDelete, why: "nothing of the pod is left"}, nil
	}
	return step{}, nil // it has ended and goes: nothing more is worth telling
}

// nextForMirror makes, replaces and deletes mirror pods.
func nextForMirror(v view) (step, error) {
	gone := v.says == nil || v.says.Phase == lifecycle.Finished
	switch {
	case v.has != nil && v.deleted == v.has.UID: // something holds it, or the news is on its way
		return step{}, nil
	case gone && v.has != nil && v.unwanted:
		return step{verb: doDelete, why: "its static pod is gone"}, nil
	case gone:
		return step{}, nil
	case v.has == nil:
		if v.synced && v.says.Phase < lifecycle.Stopping {
			return step{verb: doCreate}, nil
		}
		return step{}, nil
	case v.has.DeletionTimestamp != nil:
		return step{verb: doDelete, why: "it was deleted, and its static pod is there"}, nil
	case !mirrors(v.has, v.says.Pod):
		return step{verb: doDelete, why: "it stands for another static pod"}, nil
	case v.reminded == nil || v.reminded.UID != v.has.UID || !sameOfOthers(v.reminded, v.has):
		return step{verb: doRemind}, nil
	case !v.says.Informed:
		return step{}, nil // what the node says next will take the mirror's status into account
	case terminal(v.has.Status.Phase) && !terminal(v.says.Status.Phase) && v.says.Phase < lifecycle.Stopping:
		return step{verb: doDelete, why: "it tells of an end, and its static pod runs anew"}, nil // no phase is taken back
	}
	return v.patch()
}

// patch is what takes the API server's copy to what it should be, if it is not
// so and the server takes it.
func (v view) patch() (step, error) {
	to := merged(&v.has.Status, v.says, v.now)
	changes, err := statusChanges(&v.has.Status, &to)
	if err != nil {
		return step{}, fmt.Errorf("status of pod %s/%s: %w", v.has.Namespace, v.has.Name, err)
	}
	if changes == nil || bytes.Equal(changes, v.inVain) {
		return step{}, nil
	}
	version := ""
	if to.Phase != v.has.Status.Phase {
		version = v.has.ResourceVersion
	}
	body, err := patchOf(v.has.UID, version, changes)
	return step{verb: doPatch, body: body, changes: changes}, err
}

// isMirror says that a pod of the API server stands for a static pod.
func isMirror(pod *corev1.Pod) bool {
	_, ok := pod.Annotations[runtime.AnnotationConfigMirror]
	return ok
}

// standsFor is the UID of the static pod that a mirror was made for.
func standsFor(mirror *corev1.Pod) string { return mirror.Annotations[runtime.AnnotationConfigMirror] }

// sameOfOthers compares the conditions that others set.
func sameOfOthers(a, b *corev1.Pod) bool {
	of := func(pod *corev1.Pod) []corev1.PodCondition {
		return slices.DeleteFunc(slices.Clone(pod.Status.Conditions), func(c corev1.PodCondition) bool {
			return lifecycle.OwnsCondition(c.Type)
		})
	}
	return slices.EqualFunc(of(a), of(b), func(a, b corev1.PodCondition) bool { return reflect.DeepEqual(a, b) })
}

// mirrors says that the mirror pod stands for that very static pod.
func mirrors(mirror, static *corev1.Pod) bool {
	return static != nil && standsFor(mirror) == static.Annotations[runtime.AnnotationConfigHash]
}
