package sim

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

// checkAction holds what must be so when an action is asked for.
func (a *agent) checkAction(f *flight) {
	must := a.l.must
	must(!a.want.Held, "held", "%s of a pod that is held", f.Kind)
	must(a.mem.Phase != lifecycle.Finished, "finished", "%s of a finished pod", f.Kind)
	switch f.Kind {
	case lifecycle.Admit, lifecycle.RunHooksPrepare, lifecycle.EnsureCgroup, lifecycle.Mount, lifecycle.Pull,
		lifecycle.RunSandbox, lifecycle.StartContainer, lifecycle.RunPostStart:
		must(a.want.Stop == nil && a.want.Pod != nil && a.mem.Ending == nil && a.facts.ended.IsZero(),
			"no start after stop", "%s of a pod that ends", describe(f.Action))
	}
	switch f.Kind {
	case lifecycle.EnsureCgroup, lifecycle.Mount, lifecycle.Pull, lifecycle.RunSandbox, lifecycle.StartContainer:
		must(a.seen.Admission.Verdict == lifecycle.VerdictAdmit, "admission first", "%s before admission", f.Kind)
		must(a.w.hooked && a.seen.Prepared, "prepare first", "%s before the Prepare hooks", f.Kind)
	}
	a.checkRetry(f)
	switch f.Kind {
	case lifecycle.RunSandbox:
		a.checkRunSandbox(f)
	case lifecycle.StartContainer:
		a.checkStart(f)
	case lifecycle.StopContainer:
		a.checkStop(f)
	case lifecycle.RunPostStart:
		a.checkPostStart(f)
	}
}

// checkRetry holds that a failed action is not tried again before its time,
// and that one that failed for good is not tried again at all.
func (a *agent) checkRetry(f *flight) {
	failure, failed := a.seen.Failed[f.Key]
	same := a.facts.asked[f.Key]
	same.Grace, same.SkipPreStop, same.Restarts, same.Attempt = f.Grace, f.SkipPreStop, f.Restarts, f.Attempt
	if !failed || same != f.Action || f.Kind == lifecycle.StopContainer {
		return
	}
	a.l.must(!failure.Fatal, "no retry of what failed for good", "%s", describe(f.Action))
	due := a.due(failure)
	a.l.must(!a.l.now.Before(due), "no early retry", "%s %s too early", describe(f.Action), due.Sub(a.l.now))
}

// reasonConfig is the stock reason of containers that lack an object.
const reasonConfig = "CreateContainerConfigError"

// due is when an action that failed may be tried again: when its back-off is
// over, or a second after it failed where it may have lacked something and there
// was news since it began.
func (a *agent) due(failure lifecycle.Failure) time.Time {
	due := failure.RetryAt
	lacked := failure.Kind == lifecycle.Mount || failure.Reason == reasonConfig
	if soon := failure.At.Add(time.Second); lacked && !a.seen.NewsAt.Before(failure.Began) && soon.Before(due) {
		due = soon
	}
	return due
}

// checkNewsHeard holds that news does not have to wait for a back-off: a mount
// that is due is tried.
func (a *agent) checkNewsHeard(plan lifecycle.Plan) {
	if a.mem.Phase != lifecycle.Preparing && a.mem.Phase != lifecycle.Running || plan.Mem.Ending != nil || !a.seen.Prepared {
		return
	}
	for key, failure := range a.seen.Failed {
		if _, busy := a.flights[key]; failure.Kind != lifecycle.Mount || failure.Fatal || busy || a.seen.Mounted[key.Object()] || !a.used(key.Object()) {
			continue
		}
		planned := slices.ContainsFunc(plan.Do, func(f lifecycle.Action) bool { return f.Key == key })
		a.l.must(planned || a.l.now.Before(a.due(failure)), "news is heard", "%s is due since %s", key, a.due(failure))
	}
}

// used says whether a container of the pod mounts that volume.
func (a *agent) used(volume string) bool {
	for _, list := range [][]corev1.Container{a.want.Pod.Spec.InitContainers, a.want.Pod.Spec.Containers} {
		for i := range list {
			if slices.Contains(usedVolumes(a.want.Pod, &list[i]), volume) {
				return true
			}
		}
	}
	return false
}

func (a *agent) checkRunSandbox(f *flight) {
	must := a.l.must
	must(a.w.cgroup, "cgroup before sandbox", "no cgroup for %s", describe(f.Action))
	must(a.seen.NetworkReady || a.want.Pod.Spec.HostNetwork, "network before sandbox", "the network is not ready")
	for _, list := range [][]corev1.Container{a.want.Pod.Spec.InitContainers, a.want.Pod.Spec.Containers} {
		for i := range list {
			for _, v := range usedVolumes(a.want.Pod, &list[i]) {
				must(!a.seen.Far[v], "no sandbox for far volumes", "volume %s is far", v)
			}
		}
	}
}

// checkStart holds all that a container has to wait for.
func (a *agent) checkStart(f *flight) {
	must, name := a.l.must, f.Container
	spec, what, place := specOf(a.want.Pod, name)
	must(spec != nil, "only wanted containers", "%s is not in the spec", name)
	newest, found := a.seen.Runtime.NewestSandbox()
	must(found && newest.ID == f.SandboxID && newest.Ready, "sandbox before container",
		"%s starts in %s, which is not the newest ready sandbox", name, f.SandboxID)
	if busy, taken := a.flights[lifecycle.KeySandbox]; taken {
		must(busy.SandboxID != f.SandboxID && busy.Kind != lifecycle.RunSandbox, "sandbox before container",
			"%s starts while %s is under way", name, describe(busy.Action))
	}
	must(a.w.cgroup, "cgroup before container", "no cgroup for %s", name)
	image := a.seen.Images[name]
	must(image.Spec == spec.Image && f.Image == spec.Image, "image before container", "%s has %q, needs %q", name, image.Spec, spec.Image)
	must(a.flights[lifecycle.KeyImage(name)] == nil, "image before container", "%s starts while its image is pulled", name)
	for _, v := range usedVolumes(a.want.Pod, spec) {
		must(a.w.mounted[v] && a.flights[lifecycle.KeyVolume(v)] == nil, "mounts before container", "%s needs volume %s", name, v)
	}
	if what != ephemeralC {
		a.checkInitOrder(f, what, place)
	}
	if p := a.w.pastOf(name); !p.hazy {
		a.checkRestart(f, spec, what)
		a.checkCounts(f)
		a.checkBackoff(f)
	}
}

// checkInitOrder holds each container back until the init containers before it
// are done in the very sandbox.
func (a *agent) checkInitOrder(f *flight, what role, place int) {
	pod := a.want.Pod
	if s := a.w.sandbox(f.SandboxID); s == nil || !s.CreatedAt.After(a.w.adopted) {
		return
	}
	for _, c := range pod.Spec.Containers {
		for _, r := range a.w.pastOf(c.Name).runs {
			if r.SandboxID == f.SandboxID && !r.voided {
				return // it was initialized before
			}
		}
	}
	if what == mainC {
		place = len(pod.Spec.InitContainers)
	}
	for i := range place {
		before := &pod.Spec.InitContainers[i]
		a.l.must(a.initDone(before, f.SandboxID), "init order", "%s starts before %s is done", f.Container, before.Name)
	}
}

func (a *agent) initDone(c *corev1.Container, sandboxID string) bool {
	_, what, _ := specOf(a.want.Pod, c.Name)
	for _, r := range a.w.pastOf(c.Name).runs {
		if r.SandboxID != sandboxID || r.voided {
			continue
		}
		hook := r.hookDone || !r.startHook || r.epoch != a.epoch
		if what == sidecarC && r.started && hook || what == initC && !alive(r) && r.ExitCode == 0 {
			return true
		}
	}
	return false
}

// checkRestart holds the restart policy.
func (a *agent) checkRestart(f *flight, spec *corev1.Container, what role) {
	last := a.w.last(f.Container)
	if last == nil || last.voided {
		return
	}
	a.l.must(!alive(last) || last.removed, "one copy", "%s starts while %s runs", f.Container, last.ID)
	if last.doneBy["Changed"] || (what == initC && last.SandboxID != f.SandboxID) {
		return
	}
	a.l.must(mayRestart(a.want.Pod, spec, what, last.ExitCode), "restart policy",
		"%s container %s restarts after exit %d", what, f.Container, last.ExitCode)
}

// checkCounts holds attempts and restart counts.
func (a *agent) checkCounts(f *flight) {
	for _, c := range a.w.containers {
		a.l.must(c.Name != f.Container || c.Attempt != f.Attempt || c.hidden(f.issued), "attempt numbers",
			"%s is taken by %s", nameOf(f.Container, f.Attempt), c.ID)
	}
	last := a.w.last(f.Container)
	switch {
	case last == nil && a.toldOf(f.Container): // as of a run that nobody saw
	case last == nil:
		a.l.must(f.Restarts == 0, "restart count", "the first run of %s counts as restart %d", f.Container, f.Restarts)
	case last.epoch == a.epoch || a.shows(last.ID):
		a.l.must(f.Restarts == last.restarts+1, "restart count", "%s restarts %d after %d", f.Container, f.Restarts, last.restarts)
	}
}

// toldOf says that the API server has an end of that container.
func (a *agent) toldOf(name string) bool {
	if a.want.Prior == nil {
		return false
	}
	st := findStatus(a.want.Prior, name)
	return st != nil && (st.State.Terminated != nil || st.LastTerminationState.Terminated != nil)
}

func (a *agent) shows(id string) bool {
	for _, c := range a.seen.Runtime.Containers {
		if c.ID == id {
			return true
		}
	}
	return false
}

func (a *agent) showsAlive(id string) bool {
	for _, c := range a.seen.Runtime.Containers {
		if c.ID == id {
			return c.State == runtime.ContainerRunning || c.State == runtime.ContainerUnknown
		}
	}
	return false
}

// checkBackoff holds the crash back-off: nothing after the first end, then the
// base, doubling up to the most, and from the start after a long run.
func (a *agent) checkBackoff(f *flight) {
	rules := a.want.Rules
	inARow := 0
	var due time.Time
	for _, r := range a.w.pastOf(f.Container).runs {
		due = time.Time{}
		switch {
		case r.doneBy["Changed"]: // also where a restart of all came after it
			inARow = 0
			continue
		case r.voided || r.removed && r.FinishedAt.IsZero():
			continue
		case r.FinishedAt.Sub(r.StartedAt) >= rules.BackoffReset: // whoever ended it
			inARow = 1
		case r.killed != "" && r.killed != "Unhealthy" && r.killed != "FailedPostStartHook":
			continue
		default:
			// An agent without memory counts what the run itself tells.
			inARow = min(inARow+1, int(r.restarts)+1)
		}
		if inARow > 1 {
			due = r.FinishedAt.Add(min(rules.BackoffBase<<min(inARow-2, 10), rules.BackoffMax))
		}
	}
	a.l.must(!a.l.now.Before(due), "back-off", "%s starts %s too early after %d ends in a row", f.Container, due.Sub(a.l.now), inARow)
}

func (a *agent) checkPostStart(f *flight) {
	c := a.w.all[f.ContainerID]
	a.l.must(c != nil && !c.hookDone && !c.hookBad, "postStart once", "postStart of %s again", f.ContainerID)
	a.l.must(c.epoch == a.epoch || c.zombie, "postStart once", "postStart of %s, which an agent before this one started", f.ContainerID)
	shown := false
	for _, r := range a.seen.Runtime.Containers {
		shown = shown || r.ID == c.ID && r.State == runtime.ContainerRunning
	}
	a.l.must(shown, "postStart of running", "postStart of %s, which does not run", f.ContainerID)
}
