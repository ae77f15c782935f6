package nodemetrics

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
)

// history is what has to be known of a pod to count it right.
type history struct {
	pod    *corev1.Pod // nil: an orphan
	static bool
	seen   time.Time

	told, worked, ran, rejected bool
	ended                       map[string]bool // container IDs that were counted
	pullFrom, pullTo            time.Time
}

// pulled widens the time in which images were pulled.
func (h *history) pulled(from, to time.Time) {
	if h.pullFrom.IsZero() || from.Before(h.pullFrom) {
		h.pullFrom = from
	}
	if to.After(h.pullTo) {
		h.pullTo = to
	}
}

func (h *history) pulling() time.Duration { return h.pullTo.Sub(h.pullFrom) }

// operation is the stock label for work on a pod.
func (h *history) operation(kind lifecycle.Kind) string {
	switch kind { //nolint:exhaustive // what does not stop is create or sync
	case lifecycle.StopContainer, lifecycle.StopSandbox, lifecycle.RemoveSandbox, lifecycle.RemoveContainer,
		lifecycle.Unmount, lifecycle.RemoveCgroup, lifecycle.RemovePodDir, lifecycle.RunHooksStopping, lifecycle.RunHooksCleanup:
		return "kill"
	}
	if h.ran {
		return "sync"
	}
	return "create"
}

// The stock labels of container_type.
const (
	typeContainer = "container"
	typeInit      = "init_container"
	typeEphemeral = "ephemeral_container"
)

func (h *history) containerType(name string) string {
	if h.pod == nil {
		return typeContainer
	}
	if slices.ContainsFunc(h.pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == name }) {
		return typeInit
	}
	if slices.ContainsFunc(h.pod.Spec.EphemeralContainers, func(c corev1.EphemeralContainer) bool { return c.Name == name }) {
		return typeEphemeral
	}
	return typeContainer
}

// end is a container that ended.
type end struct{ kind, exitCode, reason string }

// newlyEnded lists the containers of a status that ended and were not counted.
func (h *history) newlyEnded(status corev1.PodStatus) (out []end) {
	for _, group := range []struct {
		kind string
		list []corev1.ContainerStatus
	}{
		{typeInit, status.InitContainerStatuses}, {typeContainer, status.ContainerStatuses}, {typeEphemeral, status.EphemeralContainerStatuses},
	} {
		for _, c := range group.list {
			for _, t := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
				if t == nil || t.ContainerID == "" || h.ended[t.ContainerID] {
					continue
				}
				h.ended[t.ContainerID] = true
				out = append(out, end{group.kind, strconv.Itoa(int(t.ExitCode)), t.Reason})
			}
		}
	}
	h.forget(status)
	return out
}

// keepEnded bounds what is remembered of a pod that restarts for ever.
const keepEnded = 100

// forget drops the containers that no status shows any more.
func (h *history) forget(status corev1.PodStatus) {
	if len(h.ended) < keepEnded {
		return
	}
	shown := map[string]bool{}
	for _, c := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses) {
		for _, t := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if t != nil {
				shown[t.ContainerID] = true
			}
		}
	}
	h.ended = shown
}

// rejection tells a pod that was not admitted from one that failed by itself:
// no container of it was ever there.
func (h *history) rejection(status corev1.PodStatus) bool {
	return !h.ran && status.Reason != "" && len(h.ended) == 0 && !started(status)
}

func started(status corev1.PodStatus) bool {
	return slices.ContainsFunc(slices.Concat(status.InitContainerStatuses, status.ContainerStatuses), func(c corev1.ContainerStatus) bool {
		return c.ContainerID != ""
	})
}

// rejectionLabel keeps the label to the words that the stock kubelet uses.
func rejectionLabel(reason string) string {
	switch reason {
	case "AppArmor", "PodOSSelectorNodeLabelDoesNotMatch", "PodOSNotSupported", "InvalidNodeInfo", "InitContainerRestartPolicyForbidden",
		"SupplementalGroupsPolicyNotSupported", "UnexpectedAdmissionError", "UnknownReason", "UnexpectedPredicateFailureType",
		"OutOfcpu", "OutOfmemory", "OutOfephemeral-storage", "OutOfpods", "PodLevelResourcesNotSupported", "PodFeatureUnsupported",
		"Evicted", "SysctlForbidden", "TopologyAffinityError", "NodeShutdown", "VolumeAttachmentLimitExceeded":
		return reason
	}
	if strings.HasPrefix(reason, "OutOf") {
		return "OutOfExtendedResources"
	}
	return "Other"
}
