package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The stock kubelet's reasons of conditions.
const (
	condNotReady       = "ContainersNotReady"
	condNotInitialized = "ContainersNotInitialized"
	condCompleted      = "PodCompleted"
	condFailed         = "PodFailed"
	condGates          = "ReadinessGatesNotReady"
	condNoSandbox      = "PodSandboxNotReady"
	condRestartingAll  = "RestartAllContainersStarted"
	messageRestarting  = "container exited with restart policy rule"
)

// ourConditions are those that the agent sets; all others belong to others and
// are handed through.
var ourConditions = [...]corev1.PodConditionType{
	corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady,
	corev1.PodScheduled, corev1.AllContainersRestarting, corev1.DisruptionTarget, ConditionAdmitted,
}

// OwnsCondition says that the agent alone sets conditions of this type. All
// others are set by others, DisruptionTarget by others too.
func OwnsCondition(kind corev1.PodConditionType) bool {
	return kind != corev1.DisruptionTarget && slices.Contains(ourConditions[:], kind)
}

// verdict is a condition without its type and times.
type verdict struct {
	met             bool
	reason, message string
}

func (d *decision) addConditions(s *corev1.PodStatus) {
	if d.pod == nil {
		return
	}
	if !d.neverAdmitted() {
		containersReady := d.containersReady(s)
		d.setCondition(s, corev1.PodReadyToStartContainers, d.readyToStart())
		d.setCondition(s, corev1.PodInitialized, d.podInitialized(s))
		d.setCondition(s, corev1.PodReady, d.podReady(containersReady))
		d.setCondition(s, corev1.ContainersReady, containersReady)
	}
	d.setCondition(s, corev1.PodScheduled, verdict{met: true})
	d.addAdmitted(s)
	d.addRestarting(s)
	d.addDisruption(s)
	s.Conditions = append(s.Conditions, d.foreignConditions()...)
}

// readyToStart says whether the pod has the sandbox that its containers need.
func (d *decision) readyToStart() verdict {
	if d.sandbox != nil {
		return verdict{met: true}
	}
	v := verdict{reason: condNoSandbox}
	newest, found := d.in.Seen.Runtime.NewestSandbox()
	switch {
	case !found:
		v.message = "no pod sandbox exists"
	case !newest.Ready:
		v.message = "pod sandbox is not ready"
	case newest.HostNetwork != d.pod.Spec.HostNetwork:
		v.message = "network namespace mode changed and sandbox needs to be recreated"
	default:
		v.message = "pod sandbox has no IP address"
	}
	return v
}

// setCondition adds a condition; its time is when its status last changed.
func (d *decision) setCondition(s *corev1.PodStatus, kind corev1.PodConditionType, v verdict) {
	c := corev1.PodCondition{
		Type: kind, Status: corev1.ConditionFalse, Reason: v.reason, Message: v.message,
		ObservedGeneration: d.pod.Generation, LastTransitionTime: stamp(d.now),
	}
	if v.met {
		c.Status = corev1.ConditionTrue
	}
	if old := d.oldCondition(kind); old != nil && old.Status == c.Status && !old.LastTransitionTime.IsZero() {
		c.LastTransitionTime = old.LastTransitionTime
	}
	s.Conditions = append(s.Conditions, c)
}

func (d *decision) oldCondition(kind corev1.PodConditionType) *corev1.PodCondition {
	old := d.oldStatus()
	if old == nil {
		return nil
	}
	for i := range old.Conditions {
		if old.Conditions[i].Type == kind {
			return &old.Conditions[i]
		}
	}
	return nil
}

// foreignConditions are set by others, as the API server last had them.
func (d *decision) foreignConditions() []corev1.PodCondition {
	from := d.in.Want.Prior
	if from == nil {
		from = &d.pod.Status
	}
	var others []corev1.PodCondition
	for _, c := range from.Conditions {
		if !slices.Contains(ourConditions[:], c.Type) {
			others = append(others, c)
		}
	}
	return others
}

func (d *decision) containersReady(s *corev1.PodStatus) verdict {
	if reason := reasonOfEnd(s.Phase); reason != "" {
		return verdict{reason: reason}
	}
	var unready []string
	for _, c := range d.withRole(sidecarRole, mainRole) {
		if st, found := statusOf(s, c.name); !found || !st.Ready {
			unready = append(unready, c.name)
		}
	}
	if len(unready) > 0 {
		return verdict{reason: condNotReady, message: fmt.Sprintf("containers with unready status: %s", unready)}
	}
	return verdict{met: true}
}

// podReady is containersReady plus the readiness gates that others set.
func (d *decision) podReady(containers verdict) verdict {
	if !containers.met {
		return containers
	}
	foreign := d.foreignConditions()
	var missing []string
	for _, gate := range d.pod.Spec.ReadinessGates {
		i := slices.IndexFunc(foreign, func(c corev1.PodCondition) bool { return c.Type == gate.ConditionType })
		switch {
		case i < 0:
			missing = append(missing, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case foreign[i].Status != corev1.ConditionTrue:
			missing = append(missing, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType, foreign[i].Status))
		}
	}
	if len(missing) > 0 {
		return verdict{reason: condGates, message: strings.Join(missing, ", ")}
	}
	return verdict{met: true}
}

// podInitialized says whether the init containers are done. A pod whose main
// containers ran was initialized and stays so.
func (d *decision) podInitialized(s *corev1.PodStatus) verdict {
	var open []string
	for _, st := range s.InitContainerStatuses {
		c := d.named(st.Name)
		done := st.Ready
		if c.role == sidecarRole {
			done = st.Started != nil && *st.Started
		}
		if !done {
			open = append(open, st.Name)
		}
	}
	switch {
	case s.Phase == corev1.PodSucceeded:
		return verdict{met: true, reason: condCompleted}
	case len(open) == 0 || d.anyMainRan():
		return verdict{met: true}
	}
	return verdict{reason: condNotInitialized, message: fmt.Sprintf("containers with incomplete status: %s", open)}
}

func (d *decision) anyMainRan() bool {
	for _, c := range d.withRole(mainRole) {
		if c.mem.Ran {
			return true
		}
	}
	return false
}

// addRestarting tells of a restart of all containers until each of them runs
// anew, so that an agent without memory does not take their old ends for the
// end. A pod that may restart so always has the condition.
func (d *decision) addRestarting(s *corev1.PodStatus) {
	old := d.oldCondition(corev1.AllContainersRestarting)
	switch {
	case d.restartAll != nil:
		d.setCondition(s, corev1.AllContainersRestarting, verdict{
			met: true, reason: condRestartingAll, message: messageRestarting,
		})
	case old != nil && old.Status == corev1.ConditionTrue && d.anyAnew():
		d.setCondition(s, corev1.AllContainersRestarting, verdict{met: true, reason: old.Reason, message: old.Message})
	case old != nil || d.mayRestartAll():
		d.setCondition(s, corev1.AllContainersRestarting, verdict{reason: reasonOfEnd(s.Phase)})
	}
}

// mayRestartAll says that a rule of a container asks to restart all of them.
func (d *decision) mayRestartAll() bool {
	if !d.in.Want.Rules.RestartAllContainers {
		return false
	}
	return slices.ContainsFunc(d.withRole(initRole, sidecarRole, mainRole), func(c *container) bool {
		return slices.ContainsFunc(c.spec.RestartPolicyRules, func(r corev1.ContainerRestartRule) bool {
			return r.Action == corev1.ContainerRestartRuleActionRestartAllContainers
		})
	})
}

// reasonOfEnd is why nothing is ready in a pod that has ended.
func reasonOfEnd(phase corev1.PodPhase) string {
	switch phase {
	case corev1.PodSucceeded:
		return condCompleted
	case corev1.PodFailed:
		return condFailed
	case corev1.PodPending, corev1.PodRunning, corev1.PodUnknown:
	}
	return ""
}

// addDisruption tells that the node ended the pod, once the pod has ended.
// Who else told of a disruption is not contradicted.
func (d *decision) addDisruption(s *corev1.PodStatus) {
	if d.mem.Disrupted && d.final() {
		d.setCondition(s, corev1.DisruptionTarget, verdict{
			met: true, reason: corev1.PodReasonTerminationByKubelet, message: d.mem.Ending.Message,
		})
		return
	}
	if old := d.oldCondition(corev1.DisruptionTarget); old != nil {
		s.Conditions = append(s.Conditions, *old)
	}
}
