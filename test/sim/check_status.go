package sim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

// checkStatus holds what every status must be, beside what the machine knows
// and what is true.
func (a *agent) checkStatus(plan lifecycle.Plan) {
	if a.want.Held || !a.seen.Looked || a.want.Pod == nil {
		return
	}
	s := &plan.Status
	a.checkTerminal(plan)
	for _, st := range allStatuses(s) {
		a.checkContainerStatus(st)
	}
	a.checkReadiness(s)
	a.checkTimes(s)
}

func terminal(p corev1.PodPhase) bool { return p == corev1.PodSucceeded || p == corev1.PodFailed }

// checkTerminal holds that a terminal phase comes late, is right and stays.
func (a *agent) checkTerminal(plan lifecycle.Plan) {
	must, s := a.l.must, &plan.Status
	if old := a.mem.Status; old != nil && terminal(old.Phase) {
		must(s.Phase == old.Phase, "a terminal phase stays", "from %s to %s", old.Phase, s.Phase)
		return
	}
	prior := a.want.Prior
	if prior != nil && terminal(prior.Phase) {
		must(a.want.Static || s.Phase == prior.Phase, "a terminal phase stays", "from %s to %s over a restart", prior.Phase, s.Phase)
		return
	}
	if !terminal(s.Phase) {
		return
	}
	for _, c := range a.w.running(a.l.now) {
		must(false, "terminal when nothing runs", "%s while %s runs", s.Phase, c.ID)
	}
	for _, f := range a.flights {
		must(f.Kind != lifecycle.StartContainer || f.returned, "terminal when nothing starts", "%s while %s starts", s.Phase, f.Container)
	}
	a.checkVerdict(plan)
}

// checkVerdict holds that a pod succeeded if and only if all its main
// containers did and nobody failed it.
func (a *agent) checkVerdict(plan lifecycle.Plan) {
	succeeded := true
	for _, c := range a.want.Pod.Spec.Containers {
		if a.w.pastOf(c.Name).hazy {
			return
		}
		last := a.w.last(c.Name)
		succeeded = succeeded && last != nil && !last.voided && !alive(last) && last.ExitCode == 0
	}
	if a.initFailed() {
		return
	}
	switch plan.Mem.Ending.Reason {
	case lifecycle.StopEvicted, lifecycle.StopShutdown, lifecycle.StopRejected, lifecycle.StopDeadline:
		a.l.must(plan.Status.Phase == corev1.PodFailed, "verdict", "%s, although %s", plan.Status.Phase, plan.Mem.Ending.Reason)
	case lifecycle.StopCompleted:
		a.l.must((plan.Status.Phase == corev1.PodSucceeded) == succeeded, "verdict", "%s, although all succeeded is %v", plan.Status.Phase, succeeded)
		a.checkNoneWillRun()
	case lifecycle.StopDeleted, lifecycle.StopOrphaned:
		if plan.Mem.Ending.StatusReason == "" && !a.w.dead() {
			a.l.must(plan.Status.Phase != corev1.PodSucceeded || succeeded, "verdict", "Succeeded, although not all did")
		}
	}
}

// dead is for worlds whose past was cut off by an adoption.
func (w *world) dead() bool { return !w.adopted.IsZero() }

// checkNoneWillRun holds that a pod that ended by itself had nothing to do.
func (a *agent) checkNoneWillRun() {
	pod := a.want.Pod
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		last := a.w.last(c.Name)
		a.l.must(last != nil && (last.doneBy["Changed"] || !mayRestart(pod, c, mainC, last.ExitCode)), "completed when done",
			"%s is to run", c.Name)
	}
}

// initFailed says that an init container failed for good, or that nobody can
// be sure that none did.
func (a *agent) initFailed() bool {
	pod := a.want.Pod
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		_, what, _ := specOf(pod, c.Name)
		last := a.w.last(c.Name)
		if a.w.pastOf(c.Name).hazy || what == initC && last != nil && last.ExitCode != 0 && !mayRestart(pod, c, what, last.ExitCode) {
			return true
		}
	}
	return false
}

func allStatuses(s *corev1.PodStatus) []corev1.ContainerStatus {
	return slices.Concat(s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses)
}

func findStatus(s *corev1.PodStatus, name string) *corev1.ContainerStatus {
	for _, st := range allStatuses(s) {
		if st.Name == name {
			return &st
		}
	}
	return nil
}

func (a *agent) checkContainerStatus(st corev1.ContainerStatus) {
	must := a.l.must
	states := 0
	for _, set := range []bool{st.State.Waiting != nil, st.State.Running != nil, st.State.Terminated != nil} {
		if set {
			states++
		}
	}
	must(states == 1, "one state", "%s has %d", st.Name, states)
	shown, newest := a.showsRun(st.Name)
	_, busy := a.flights[lifecycle.KeyContainer(st.Name)]
	must(st.State.Running == nil || shown || busy, "running when it runs", "%s does not", st.Name)
	// An older run may be alive: a start of a dead agent that came late made one
	// more, one of the two is stopped as doubled, and meanwhile the newest ends.
	// What a status tells is the newest; the pod is not over before both are.
	// And what a call of a dead agent starts in a pod that was told to have ended
	// is stopped without a word: the API server refuses to hear of a container that
	// it knows as terminated, and that is not to restart, that it runs.
	must(st.State.Terminated == nil || !newest || a.startedTooLate(st.Name), "terminated when it ended", "%s runs", st.Name)
	_, what, _ := specOf(a.want.Pod, st.Name)
	must(!st.Ready || st.State.Running != nil || what == initC, "ready when it runs", "%s does not", st.Name)
	if old := a.mem.Status; old != nil {
		if before := findStatus(old, st.Name); before != nil {
			must(st.RestartCount >= before.RestartCount, "restart counts never fall", "%s from %d to %d", st.Name, before.RestartCount, st.RestartCount)
		}
	} else if a.want.Prior != nil {
		if before := findStatus(a.want.Prior, st.Name); before != nil {
			must(st.RestartCount >= before.RestartCount, "restart counts never fall", "%s from %d to %d over a restart", st.Name, before.RestartCount, st.RestartCount)
		}
	}
	if last := a.w.last(st.Name); last != nil && a.shows(last.ID) {
		must(st.RestartCount == last.restarts || a.w.pastOf(st.Name).hazy, "restart count", "%s tells %d, is %d", st.Name, st.RestartCount, last.restarts)
	}
}

// startedTooLate says that the newest run of a container comes from a call of a
// dead agent, and that the pod had been told to have ended by then.
func (a *agent) startedTooLate(name string) bool {
	last := a.w.last(name)
	return last != nil && last.zombie && a.mem.Status != nil && terminal(a.mem.Status.Phase)
}

// showsRun says whether the agent was shown any run of a container alive, and
// whether it was so shown the newest.
func (a *agent) showsRun(name string) (some, newest bool) {
	first := true
	for _, r := range a.seen.Runtime.Containers { // newest first
		if r.Name != name || r.State == runtime.ContainerCreated {
			continue
		}
		up := r.State == runtime.ContainerRunning || r.State == runtime.ContainerUnknown
		some, newest, first = some || up, newest || first && up, false
	}
	return some, newest
}

func condition(s *corev1.PodStatus, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == kind {
			return &s.Conditions[i]
		}
	}
	return nil
}

func (a *agent) checkReadiness(s *corev1.PodStatus) {
	ready := condition(s, corev1.ContainersReady)
	if ready == nil {
		return
	}
	all := !terminal(s.Phase)
	for i := range s.InitContainerStatuses {
		if _, what, _ := specOf(a.want.Pod, s.InitContainerStatuses[i].Name); what == sidecarC {
			all = all && s.InitContainerStatuses[i].Ready
		}
	}
	for i := range s.ContainerStatuses {
		all = all && s.ContainerStatuses[i].Ready
	}
	a.l.must((ready.Status == corev1.ConditionTrue) == all, "ready when all are", "condition %s, containers %v", ready.Status, all)
	pod := condition(s, corev1.PodReady)
	a.l.must(pod != nil && pod.Status == ready.Status, "ready when all are", "pod and containers differ")
	a.l.must(!all || a.facts.ended.IsZero() && a.mem.Ending == nil, "not ready while it ends", "it is")
}

// checkTimes holds that the time of a condition changes with its status alone.
func (a *agent) checkTimes(s *corev1.PodStatus) {
	if a.mem.Status == nil {
		return
	}
	for _, c := range s.Conditions {
		if old := condition(a.mem.Status, c.Type); old != nil && old.Status == c.Status {
			a.l.must(old.LastTransitionTime.Equal(&c.LastTransitionTime), "transition times", "%s changed without changing", c.Type)
		}
	}
}
