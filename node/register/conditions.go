package register

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/runtime"
)

// SetCondition puts a condition in the place of the one of its type. Setters
// leave both of its times zero: the registrar fills them in, and so keeps the
// time of the last transition while the status stays what it was.
func SetCondition(n *corev1.Node, c corev1.NodeCondition) {
	if i := indexOf(n.Status.Conditions, c.Type); i >= 0 {
		n.Status.Conditions[i] = c
		return
	}
	n.Status.Conditions = append(n.Status.Conditions, c)
}

func indexOf(conditions []corev1.NodeCondition, kind corev1.NodeConditionType) int {
	return slices.IndexFunc(conditions, func(c corev1.NodeCondition) bool { return c.Type == kind })
}

// statusOf is empty for a condition that is not there.
func statusOf(n *corev1.Node, kind corev1.NodeConditionType) corev1.ConditionStatus {
	if n == nil {
		return ""
	}
	if i := indexOf(n.Status.Conditions, kind); i >= 0 {
		return n.Status.Conditions[i].Status
	}
	return ""
}

// stamp fills in the times of the conditions that setters set. Before is nil
// for a new Node.
func stamp(before, after *corev1.Node, now time.Time) {
	at := metav1.NewTime(now)
	for i := range after.Status.Conditions {
		c := &after.Status.Conditions[i]
		if !c.LastHeartbeatTime.IsZero() {
			continue // someone else's
		}
		c.LastHeartbeatTime, c.LastTransitionTime = at, at
		if before == nil {
			continue
		}
		if j := indexOf(before.Status.Conditions, c.Type); j >= 0 && before.Status.Conditions[j].Status == c.Status {
			c.LastTransitionTime = before.Status.Conditions[j].LastTransitionTime
		}
	}
}

// pressureCondition has the stock reasons and messages.
func pressureCondition(kind corev1.NodeConditionType, under bool) corev1.NodeCondition {
	c := corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse}
	if under {
		c.Status = corev1.ConditionTrue
	}
	switch kind {
	case corev1.NodeMemoryPressure:
		c.Reason, c.Message = "KubeletHasSufficientMemory", "kubelet has sufficient memory available"
		if under {
			c.Reason, c.Message = "KubeletHasInsufficientMemory", "kubelet has insufficient memory available"
		}
	case corev1.NodeDiskPressure:
		c.Reason, c.Message = "KubeletHasNoDiskPressure", "kubelet has no disk pressure"
		if under {
			c.Reason, c.Message = "KubeletHasDiskPressure", "kubelet has disk pressure"
		}
	case corev1.NodePIDPressure:
		c.Reason, c.Message = "KubeletHasSufficientPID", "kubelet has sufficient PID available"
		if under {
			c.Reason, c.Message = "KubeletHasInsufficientPID", "kubelet has insufficient PID available"
		}
	}
	return c
}

// readyInput is all that Ready depends on.
type readyInput struct {
	now      time.Time
	grace    time.Duration
	runtime  *runtime.Status // nil: the node has none
	problems []string        // of the checks, in order
	capacity corev1.ResourceList
	required []corev1.ResourceName
}

func readyCondition(in readyInput) corev1.NodeCondition {
	var problems []string
	if in.runtime != nil {
		problems = append(problems, runtimeProblems(*in.runtime, in.now, in.grace)...)
	}
	problems = append(problems, in.problems...)
	problems = append(problems, missing(in.capacity, in.required)...)
	if len(problems) == 0 {
		return corev1.NodeCondition{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status",
		}
	}
	return corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", Message: aggregate(problems),
	}
}

// runtimeProblems are what the runtime's last word keeps from being ready, in
// the stock words and order. A runtime that is silent keeps the node ready for
// a while: it may be restarting.
func runtimeProblems(s runtime.Status, now time.Time, grace time.Duration) (out []string) {
	switch {
	case s.ReadyAt.IsZero() && !s.RuntimeReady:
		out = append(out, "container runtime status check may not have completed yet")
	case !s.ReadyAt.IsZero() && now.Sub(s.ReadyAt) >= grace:
		out = append(out, "container runtime is down")
	}
	if c := s.Runtime; c.Known && !c.Ready {
		out = append(out, fmt.Sprintf("container runtime not ready: RuntimeReady=false reason:%s message:%s", c.Reason, c.Message))
	}
	switch c := s.Network; {
	case c.Known && !c.Ready:
		out = append(out, fmt.Sprintf("container runtime network not ready: NetworkReady=false reason:%s message:%s", c.Reason, c.Message))
	case !c.Known && !s.NetworkReady:
		out = append(out, "network state unknown")
	}
	return out
}

func missing(capacity corev1.ResourceList, required []corev1.ResourceName) []string {
	var names []string
	for _, name := range required {
		if _, ok := capacity[name]; !ok {
			names = append(names, string(name))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{"missing node capacity for resources: " + strings.Join(names, ", ")}
}

// aggregate joins problems as the stock kubelet does: each once, in brackets
// where there are several.
func aggregate(problems []string) string {
	var once []string
	for _, p := range problems {
		if !slices.Contains(once, p) {
			once = append(once, p)
		}
	}
	if len(once) == 1 {
		return once[0]
	}
	return "[" + strings.Join(once, ", ") + "]"
}
