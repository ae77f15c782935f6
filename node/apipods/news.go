package apipods

import (
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

// isMirror says that a pod stands for a static pod of the node.
func isMirror(pod *corev1.Pod) bool {
	_, ok := pod.Annotations[runtime.AnnotationConfigMirror]
	return ok
}

// asGiven is the pod as the node gets it. It shares all but its annotations.
func asGiven(pod, before *corev1.Pod, now time.Time) *corev1.Pod {
	seen := now.Format(time.RFC3339Nano)
	if before != nil {
		seen = before.Annotations[runtime.AnnotationConfigSeen]
	}
	given := *pod
	given.Annotations = make(map[string]string, len(pod.Annotations)+2)
	maps.Copy(given.Annotations, pod.Annotations)
	given.Annotations[runtime.AnnotationConfigSource] = Name
	given.Annotations[runtime.AnnotationConfigSeen] = seen
	return &given
}

// newsForNode says that something changed that the node may have to act on:
// all but what the node itself writes to the status.
func newsForNode(old, pod *corev1.Pod) bool {
	return pod.Generation != old.Generation ||
		!reflect.DeepEqual(pod.DeletionTimestamp, old.DeletionTimestamp) ||
		!reflect.DeepEqual(pod.DeletionGracePeriodSeconds, old.DeletionGracePeriodSeconds) ||
		!maps.Equal(pod.Labels, old.Labels) ||
		!maps.Equal(pod.Annotations, old.Annotations) ||
		!reflect.DeepEqual(pod.Spec, old.Spec) ||
		newsInStatus(&old.Status, &pod.Status)
}

// newsInStatus compares what others write to a pod's status. That a pod has
// ended is news whoever told it: it must not start again.
func newsInStatus(old, status *corev1.PodStatus) bool {
	return ended(status.Phase) != ended(old.Phase) ||
		status.NominatedNodeName != old.NominatedNodeName ||
		!slices.EqualFunc(foreign(status.Conditions), foreign(old.Conditions), sameCondition) ||
		!reflect.DeepEqual(status.ResourceClaimStatuses, old.ResourceClaimStatuses) ||
		!reflect.DeepEqual(status.ExtendedResourceClaimStatus, old.ExtendedResourceClaimStatus) ||
		!reflect.DeepEqual(status.NodeAllocatableResourceClaimStatuses, old.NodeAllocatableResourceClaimStatuses)
}

func ended(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

func sameCondition(a, b corev1.PodCondition) bool { return reflect.DeepEqual(a, b) }

// foreign are the conditions that others may set.
func foreign(conditions []corev1.PodCondition) []corev1.PodCondition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c corev1.PodCondition) bool {
		return lifecycle.OwnsCondition(c.Type)
	})
}
