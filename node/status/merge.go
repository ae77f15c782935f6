package status

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
)

// merged is what the API server should have of a pod: what it has, with the
// fields that the node owns as the node says. What has been told is not taken
// back: a terminal phase stays, the start time stays, and the time of a
// condition whose status is the same stays.
func merged(has *corev1.PodStatus, update *node.StatusUpdate, now time.Time) corev1.PodStatus {
	says := &update.Status
	out := *has.DeepCopy()
	out.ObservedGeneration = max(has.ObservedGeneration, says.ObservedGeneration)
	out.HostIP, out.HostIPs = says.HostIP, says.HostIPs
	out.PodIP, out.PodIPs = says.PodIP, says.PodIPs
	out.InitContainerStatuses = slices.Clone(says.InitContainerStatuses) // in the order of the spec
	out.ContainerStatuses = byName(says.ContainerStatuses)
	out.EphemeralContainerStatuses = byName(says.EphemeralContainerStatuses)
	out.Resources, out.AllocatedResources = says.Resources, says.AllocatedResources
	if out.StartTime == nil {
		out.StartTime = says.StartTime
	}
	if out.QOSClass == "" {
		out.QOSClass = says.QOSClass
	}
	if !terminal(has.Phase) {
		out.Phase, out.Reason, out.Message = says.Phase, says.Reason, says.Message
		if update.Phase == lifecycle.Finished && !update.Static && !terminal(out.Phase) {
			out.Phase = corev1.PodFailed // it never came to anything, and goes
		}
	}
	out.Conditions = mergedConditions(has.Conditions, says.Conditions)
	if terminal(out.Phase) {
		unready(&out, now)
	}
	shorten(&out)
	return out
}

func terminal(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// byName is how the stock kubelet sorts container statuses.
func byName(list []corev1.ContainerStatus) []corev1.ContainerStatus {
	return slices.SortedStableFunc(slices.Values(list), func(a, b corev1.ContainerStatus) int { return cmp.Compare(a.Name, b.Name) })
}

// mergedConditions are those of others as the API server has them, then the
// node's own. DisruptionTarget belongs to whoever told it; the node's word
// counts only for what the node did.
func mergedConditions(has, says []corev1.PodCondition) []corev1.PodCondition {
	var out []corev1.PodCondition
	ours := func(c corev1.PodCondition) bool {
		return lifecycle.OwnsCondition(c.Type) ||
			(c.Type == corev1.DisruptionTarget && c.Reason == corev1.PodReasonTerminationByKubelet)
	}
	said := map[corev1.PodConditionType]bool{}
	for _, c := range says {
		said[c.Type] = ours(c)
	}
	for _, c := range has {
		if !lifecycle.OwnsCondition(c.Type) && !said[c.Type] {
			out = append(out, c)
		}
	}
	for _, c := range says {
		if !ours(c) {
			continue
		}
		if old := find(has, c.Type); old != nil {
			c.LastProbeTime = old.LastProbeTime
			if old.Status == c.Status && !old.LastTransitionTime.IsZero() {
				c.LastTransitionTime = old.LastTransitionTime
			}
		}
		out = append(out, c)
	}
	return out
}

func find(conditions []corev1.PodCondition, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}

// unready keeps a pod that has ended from being told as ready, whoever ended it.
func unready(s *corev1.PodStatus, now time.Time) {
	reason := "PodFailed"
	if s.Phase == corev1.PodSucceeded {
		reason = "PodCompleted"
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
		if c := find(s.Conditions, kind); c != nil && c.Status == corev1.ConditionTrue {
			c.Status, c.Reason, c.Message = corev1.ConditionFalse, reason, ""
			c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
		}
	}
}

// maxMessages is how long the termination messages of one pod may be together,
// by the stock kubelet's measure: each container has its share of it.
const maxMessages = 12 << 10

// shorten cuts termination messages. What the ends point to is shared with
// others and stays as it is.
func shorten(s *corev1.PodStatus) {
	lists := [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses}
	share := maxMessages / max(1, len(lists[0])+len(lists[1])+len(lists[2]))
	for _, list := range lists {
		for i := range list {
			list[i].State.Terminated = shortened(list[i].State.Terminated, share)
			list[i].LastTerminationState.Terminated = shortened(list[i].LastTerminationState.Terminated, share)
		}
	}
}

func shortened(end *corev1.ContainerStateTerminated, limit int) *corev1.ContainerStateTerminated {
	if end == nil || len(end.Message) <= limit {
		return end
	}
	short := *end
	short.Message = strings.ToValidUTF8(end.Message[:limit], "")
	return &short
}
