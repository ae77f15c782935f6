package register

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Event is one thing to tell about the node.
type Event struct {
	Type    string // "Normal" or "Warning"
	Reason  string
	Message string
}

// reasons are the events of a condition that became true or false. Those of the
// pressures are told for a new node as well, that of Ready is not.
type reasons struct {
	kind        corev1.NodeConditionType
	onTrue      string
	onFalse     string
	whenCreated bool
}

func conditionReasons() []reasons {
	return []reasons{
		{corev1.NodeMemoryPressure, "NodeHasInsufficientMemory", "NodeHasSufficientMemory", true},
		{corev1.NodeDiskPressure, "NodeHasDiskPressure", "NodeHasNoDiskPressure", true},
		{corev1.NodePIDPressure, "NodeHasInsufficientPID", "NodeHasSufficientPID", true},
		{corev1.NodeReady, "NodeReady", "NodeNotReady", false},
	}
}

// changes are the events that tell what differs between a Node as it was told
// before (nil: never) and as it is told now.
func changes(before, after *corev1.Node) (out []Event) {
	normal := func(reason string) {
		out = append(out, Event{corev1.EventTypeNormal, reason, fmt.Sprintf("Node %s status is now: %s", after.Name, reason)})
	}
	for _, r := range conditionReasons() {
		was, is := statusOf(before, r.kind), statusOf(after, r.kind)
		if was == is || was == "" && !r.whenCreated {
			continue
		}
		switch is {
		case corev1.ConditionTrue:
			normal(r.onTrue)
		case corev1.ConditionFalse:
			normal(r.onFalse)
		}
	}
	if id := after.Status.NodeInfo.BootID; before != nil && before.Status.NodeInfo.BootID != "" && before.Status.NodeInfo.BootID != id {
		out = append(out, Event{corev1.EventTypeWarning, "Rebooted", fmt.Sprintf("Node %s has been rebooted, boot id: %s", after.Name, id)})
	}
	return out
}

// schedulable is the event of a node that was cordoned or uncordoned.
func schedulable(n *corev1.Node, wasUnschedulable bool) (out []Event) {
	if n.Spec.Unschedulable == wasUnschedulable {
		return nil
	}
	reason := "NodeSchedulable"
	if n.Spec.Unschedulable {
		reason = "NodeNotSchedulable"
	}
	return []Event{{corev1.EventTypeNormal, reason, fmt.Sprintf("Node %s status is now: %s", n.Name, reason)}}
}
