package sim

import (
	"slices"
	"time"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

// facts is what one agent's machine must not go back on.
type facts struct {
	ended     time.Time // when it was first seen to end
	killLimit time.Time // the earliest kill time asked for
	killAt    map[string]time.Time
	asked     map[lifecycle.Key]lifecycle.Action // the last action of each key
}

// noteFacts writes down, just before a decision, which reasons to stop each
// container there are in what the machine is shown.
func (a *agent) noteFacts() {
	if a.want.Held || !a.seen.Looked {
		return
	}
	newest, found := a.seen.Runtime.NewestSandbox()
	all := a.restartsAll()
	byName := map[string]bool{}
	for _, r := range a.seen.Runtime.Containers {
		first := !byName[r.Name]
		if r.State != runtime.ContainerCreated {
			byName[r.Name] = true
		}
		c := a.w.all[r.ID]
		if c == nil || (r.State != runtime.ContainerRunning && r.State != runtime.ContainerUnknown) {
			continue
		}
		spec, _, _ := specOf(a.want.Pod, r.Name)
		note := func(reason string, is bool) {
			if is {
				c.doneBy[reason] = true
			}
		}
		note("Unwanted", spec == nil)
		note("Doubled", !first)
		note("Unknown", r.State == runtime.ContainerUnknown)
		note("SandboxChanged", !found || newest.ID != r.SandboxID || !newest.Ready || (a.want.Pod != nil && newest.HostNetwork != a.want.Pod.Spec.HostNetwork))
		note("Changed", spec != nil && r.Annotations[runtime.AnnotationContainerHash] != lifecycle.ContainerHash(spec))
		note("FailedPostStartHook", a.seen.PostStart[r.ID].Failed)
		note("Unhealthy", a.seen.Probes[r.Name].ContainerID == r.ID && a.seen.Probes[r.Name].Unhealthy)
		note("RestartAllContainers", all)
	}
}

// restartsAll says that the newest run of a container ended in a way that asks
// to restart all of them.
func (a *agent) restartsAll() bool {
	newest := map[string]bool{}
	for _, r := range a.seen.Runtime.Containers {
		if r.State == runtime.ContainerCreated || newest[r.Name] {
			continue
		}
		newest[r.Name] = true
		spec, _, _ := specOf(a.want.Pod, r.Name)
		if spec != nil && r.State == runtime.ContainerExited && ruleFor(spec, r.ExitCode) == "RestartAllContainers" {
			return true
		}
	}
	return false
}

// checkStop holds reasons, order and grace of a stop.
func (a *agent) checkStop(f *flight) {
	c := a.w.all[f.ContainerID]
	a.l.must(c != nil && c.Name == f.Container, "stop what is there", "%s is not a run of %s", f.ContainerID, f.Container)
	if a.facts.ended.IsZero() {
		a.l.must(c.doneBy[f.Reason], "no needless stop", "%s is stopped for %q, which is not so", c.ID, f.Reason)
	}
	a.checkGrace(f, c)
	if f.Reason == "PodEnds" {
		over := !a.l.now.Before(a.facts.killLimit)
		a.l.must(a.want.Pod == nil || a.seen.StoppingDone || over, "hooks before stop", "%s is stopped before the Stopping hooks", c.ID)
		a.checkSidecarOrder(f, over)
	}
}

func (a *agent) checkGrace(f *flight, c *container) {
	kill := a.l.now.Add(f.Grace)
	least := a.l.now.Add(a.want.Rules.MinimumGrace)
	if !a.facts.ended.IsZero() {
		a.l.must(!kill.After(a.facts.killLimit) || !kill.After(least), "grace of the pod",
			"%s is killed %s after the grace is over", c.ID, kill.Sub(a.facts.killLimit))
	}
	if before, asked := a.facts.killAt[c.ID]; asked && f.Grace > 0 && !a.w.pastOf(c.Name).hazy {
		a.l.must(!kill.After(before), "grace never grows", "%s is killed %s later than asked before", c.ID, kill.Sub(before))
	}
	a.facts.killAt[c.ID] = kill
}

// checkSidecarOrder holds that sidecars stop after all others, the last first.
func (a *agent) checkSidecarOrder(f *flight, over bool) {
	_, what, place := specOf(a.want.Pod, f.Container)
	if what != sidecarC || over {
		return
	}
	for _, other := range a.w.running(a.l.now) {
		_, otherWhat, otherPlace := specOf(a.want.Pod, other.Name)
		if other.Name == f.Container {
			continue
		}
		a.l.must(otherWhat == sidecarC && otherPlace < place, "sidecars stop last, in reverse",
			"sidecar %s is stopped while %s runs", f.Container, other.ID)
	}
}

// checkEffect holds what must be so when an action takes effect. Calls of dead
// agents are nobody's fault.
func (a *agent) checkEffect(f *flight) {
	if f.zombie {
		return
	}
	must, w := a.l.must, a.w
	switch f.Kind {
	case lifecycle.RunSandbox:
		must(len(w.ready(f.issued)) == 0, "one sandbox", "a second ready sandbox")
		a.checkNetworks(f.issued)
		must(len(w.running(f.issued)) == 0, "one sandbox", "a new sandbox while containers run")
	case lifecycle.StartContainer:
		for _, c := range w.running(f.issued) {
			must(c.Name != f.Container, "one copy", "%s starts while %s runs", f.Container, c.ID)
		}
		spec, _, _ := specOf(f.pod, f.Container)
		for _, v := range usedVolumes(f.pod, spec) {
			must(w.mounted[v], "mounts before container", "volume %s is gone under %s", v, f.Container)
		}
	case lifecycle.StopSandbox, lifecycle.RemoveSandbox:
		a.checkSandboxEnd(f)
	case lifecycle.RemoveContainer:
		for _, c := range w.running(f.issued) {
			must(c.ID != f.ContainerID, "no removal of running", "%s is removed while it runs", c.ID)
		}
	case lifecycle.Unmount:
		a.checkNothingStands(f, "no unmount")
		a.checkNothingStarts(f)
	case lifecycle.RemoveCgroup:
		a.checkNothingStands(f, "no cgroup removed")
		a.checkNothingStarts(f)
	case lifecycle.RunHooksCleanup:
		must(len(w.running(f.issued)) == 0 && len(w.mounted) == 0 && !w.cgroup, "cleanup last", "there is %s", w.left())
	case lifecycle.RemovePodDir:
		must(len(w.mounted) == 0, "no directory removed over mounts", "mounts %v", w.mounted)
		must(len(w.running(f.issued)) == 0, "no directory removed under a container", "")
	}
}

// checkNetworks holds that a sandbox that died is stopped all the same: its
// network is still there.
func (a *agent) checkNetworks(at time.Time) {
	for _, s := range a.w.sandboxes {
		a.l.must(s.stopped || s.Ready || s.hidden(at), "dead sandboxes are stopped", "%s was not", s.ID)
	}
}

// checkHurry holds that once the grace of the pod is over, a stop under way
// that would take longer is called off.
func (a *agent) checkHurry(plan lifecycle.Plan) {
	if a.facts.ended.IsZero() || a.l.now.Before(a.facts.killLimit) {
		return
	}
	limit := a.l.now.Add(a.want.Rules.MinimumGrace)
	for key, f := range a.flights {
		if f.Kind != lifecycle.StopContainer || f.cancelled || f.returned || slices.Contains(plan.Cancel, key) || !a.showsAlive(f.ContainerID) {
			continue
		}
		a.l.must(!f.issued.Add(f.Grace).After(limit), "a stop is hurried", "%s would kill %s too late",
			describe(f.Action), f.issued.Add(f.Grace).Sub(limit))
	}
}

func (a *agent) checkSandboxEnd(f *flight) {
	for _, c := range a.w.running(f.issued) {
		a.l.must(c.SandboxID != f.SandboxID, "no sandbox ended over a container", "%s of %s over %s", f.Kind, f.SandboxID, c.ID)
	}
	for _, other := range a.flights {
		a.l.must(other.Kind != lifecycle.StartContainer || other.SandboxID != f.SandboxID || other.effective,
			"no sandbox ended over a container", "%s of %s while %s starts", f.Kind, f.SandboxID, other.Container)
	}
}

// checkNothingStands holds that what sandboxes and containers stand on goes after
// them: also after those that a dead agent's call made behind the back of this
// one, if they were there when the end was decided. Who takes away looks first.
func (a *agent) checkNothingStands(f *flight, rule string) {
	known := func(o origin, made time.Time) bool { return !o.hidden(f.issued) || made.Before(a.facts.ended) }
	for _, s := range a.w.sandboxes {
		a.l.must(!s.Ready || !known(s.origin, s.CreatedAt), rule+" under a sandbox", "%s under %s", describe(f.Action), s.ID)
	}
	for _, c := range a.w.containers {
		a.l.must(!alive(c) || !known(c.origin, c.CreatedAt), rule+" under a container", "%s under %s", describe(f.Action), c.ID)
	}
}

// checkNothingStarts holds that nothing in flight can still bring something to
// life while the pod is taken down.
func (a *agent) checkNothingStarts(f *flight) {
	for _, other := range a.flights {
		a.l.must(other.Kind != lifecycle.StartContainer && other.Kind != lifecycle.RunSandbox && other.Kind != lifecycle.Mount,
			"no cleaning under a start", "%s while %s is under way", f.Kind, describe(other.Action))
	}
}
