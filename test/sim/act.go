package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
)

// How an action will end, drawn when it starts.
type fate string

const (
	works     fate = "works"
	fails     fate = "fails"             // without effect
	deceives  fate = "fails with effect" // the effect is there all the same
	halfway   fate = "is left halfway"   // StartContainer leaves a created container
	fatality  fate = "fails for good"    // until the spec changes
	noRuntime fate = "finds no runtime"
)

// flight is one action under way.
type flight struct {
	lifecycle.Action
	agent  *agent
	epoch  int
	pod    *corev1.Pod // at its start
	issued time.Time

	fate      fate
	zombie    bool // its agent died
	cancelled bool
	dropped   bool // the effect will not come any more
	effective bool // the effect is there
	returned  bool
	after     int // number of the newest look when it returned
	apply     func(*lifecycle.Seen)
	reserved  string
}

// changesRuntime says that what the action left behind is to be looked for.
func changesRuntime(kind lifecycle.Kind) bool {
	switch kind {
	case lifecycle.RunSandbox, lifecycle.StopSandbox, lifecycle.RemoveSandbox,
		lifecycle.StartContainer, lifecycle.StopContainer, lifecycle.RemoveContainer:
		return true
	}
	return false
}

// start begins an action: its effect comes after a while, its return later.
func (a *agent) start(action lifecycle.Action) {
	l := a.l
	f := &flight{Action: action, agent: a, epoch: a.epoch, pod: a.want.Pod, issued: l.now, fate: l.fateOf(action)}
	a.flights[action.Key] = f
	l.actions++
	a.checkAction(f)
	a.facts.asked[action.Key] = action
	if f.reserve(a.w) {
		f.fate = fails
	}
	if action.Kind == lifecycle.StopContainer && f.fate != fails {
		f.stopContainer()
		return
	}
	took := l.durationOf(action.Kind)
	if f.fate != fails && f.fate != fatality {
		l.after(time.Duration(float64(took)*l.rng.Float64()), f.effect)
	}
	l.after(took, func() {
		if action.Kind != lifecycle.StopContainer || f.fate == fails {
			f.finish()
		}
	})
}

func (l *life) fateOf(a lifecycle.Action) fate {
	switch {
	case l.down && changesRuntime(a.Kind):
		return fails
	case l.chance(Failures, l.badness):
		if l.rng.IntN(8) == 0 && (a.Kind == lifecycle.Pull || a.Kind == lifecycle.StartContainer) {
			return fatality
		}
		if a.Kind == lifecycle.StartContainer && l.rng.IntN(3) == 0 {
			return halfway
		}
		return fails
	case l.chance(Effects, l.badness/2):
		return deceives
	}
	return works
}

func (l *life) durationOf(kind lifecycle.Kind) time.Duration {
	if l.chance(Slowness, 0.03) {
		return between(l.rng, 5*time.Second, 3*time.Minute)
	}
	if kind == lifecycle.Pull {
		return between(l.rng, 10*time.Millisecond, time.Minute)
	}
	return between(l.rng, time.Millisecond, 3*time.Second)
}

// reserve takes the name of what is to be made; true: somebody has it.
func (f *flight) reserve(w *world) (taken bool) {
	switch f.Kind {
	case lifecycle.RunSandbox:
		f.reserved = nameOf("sandbox", f.Attempt)
	case lifecycle.StartContainer:
		f.reserved = nameOf(f.Container, f.Attempt)
	default:
		return false
	}
	if w.reserved[f.reserved] {
		f.reserved = ""
		return true
	}
	w.reserved[f.reserved] = true
	return false
}

func (f *flight) release() {
	if f.reserved != "" {
		delete(f.agent.w.reserved, f.reserved)
		f.reserved = ""
	}
}

// effect changes the truth.
func (f *flight) effect() {
	if f.dropped || f.effective {
		return
	}
	l := f.agent.l
	if l.down && changesRuntime(f.Kind) {
		if !f.zombie {
			f.fate = noRuntime
		}
		f.dropped = true
		f.release()
		return
	}
	f.effective = true
	l.trace("  effect of %s%s", describe(f.Action), zombieMark(f))
	f.agent.checkEffect(f)
	f.do(f.agent.w)
	f.release()
}

func (f *flight) do(w *world) {
	switch f.Kind {
	case lifecycle.Admit:
		admission := f.agent.inc.admission(w.l)
		f.apply = func(s *lifecycle.Seen) { s.Admission = admission }
	case lifecycle.RunHooksPrepare:
		w.hooked, w.dirs = true, true
		f.apply = func(s *lifecycle.Seen) { s.Prepared = true }
	case lifecycle.RunHooksStopping:
		f.apply = func(s *lifecycle.Seen) { s.StoppingDone = true }
	case lifecycle.RunHooksCleanup:
		w.hooked = false
		f.apply = func(s *lifecycle.Seen) { s.CleanedUp = true }
	case lifecycle.EnsureCgroup:
		w.cgroup = true
		f.apply = func(s *lifecycle.Seen) { s.Cgroup, s.CgroupGone = true, false }
	case lifecycle.RemoveCgroup:
		w.cgroup = false
		f.apply = func(s *lifecycle.Seen) { s.Cgroup, s.CgroupGone = false, true }
	case lifecycle.Mount:
		w.mounted[f.Volume] = true
	case lifecycle.Unmount:
		delete(w.mounted, f.Volume)
	case lifecycle.Pull:
		f.apply = func(s *lifecycle.Seen) {
			s.Images[f.Container] = lifecycle.Image{Spec: f.Image, Ref: "sha256:" + f.Image}
		}
	case lifecycle.RunPostStart:
		f.postStart(w)
	case lifecycle.RemovePodDir:
		w.dirs = false
		f.apply = func(s *lifecycle.Seen) { s.DirsGone = true }
	case lifecycle.RunSandbox:
		f.runSandbox(w)
	case lifecycle.StopSandbox, lifecycle.RemoveSandbox:
		f.endSandbox(w)
	case lifecycle.StartContainer:
		f.startContainer(w)
	case lifecycle.RemoveContainer:
		if c := w.container(f.ContainerID); c != nil && !alive(c) {
			c.voided = c.voided || f.Reason == "RestartAllContainers"
			c.lost = f.zombie
			w.removeContainer(c)
		}
	case lifecycle.StopContainer: // see stopContainer
	}
}

func (f *flight) postStart(w *world) {
	c := w.container(f.ContainerID)
	if c == nil {
		return
	}
	c.hookRuns++
	bad := w.l.chance(Hooks, 0.1) || !alive(c)
	c.hookDone, c.hookBad = !bad, bad
	result := lifecycle.PostStart{Done: true, Failed: bad, Message: "hook"}
	f.apply = func(s *lifecycle.Seen) { s.PostStart[f.ContainerID] = result }
}

func (f *flight) runSandbox(w *world) {
	for _, s := range w.sandboxes {
		if s.Attempt == f.Attempt {
			f.fate = noRuntime // the name is taken
			return
		}
	}
	w.addSandbox(f.Attempt, f.pod.Spec.HostNetwork, f.zombie)
}

func (f *flight) endSandbox(w *world) {
	s := w.sandbox(f.SandboxID)
	if s == nil {
		return
	}
	s.Ready, s.IPs, s.stopped = false, nil, true
	for _, c := range w.containers {
		if c.SandboxID == s.ID {
			w.exit(c, 137, "")
		}
	}
	w.changed()
	if f.Kind == lifecycle.RemoveSandbox {
		for _, c := range w.containers {
			c.lost = c.lost || f.zombie && c.SandboxID == s.ID
		}
		w.removeSandbox(s)
	}
}

func (f *flight) startContainer(w *world) {
	s := w.sandbox(f.SandboxID)
	if s == nil || !s.Ready {
		f.fate = noRuntime
		return
	}
	for _, c := range w.containers {
		if c.Name == f.Container && c.Attempt == f.Attempt {
			f.fate = noRuntime // the name is taken
			return
		}
	}
	w.addContainer(f.Action, f.pod, f, f.fate == halfway)
}

// stopContainer runs the preStop hook, sends SIGTERM, and after the grace
// SIGKILL. It returns when the process is gone.
func (f *flight) stopContainer() {
	a, l := f.agent, f.agent.l
	c := a.w.container(f.ContainerID)
	if c == nil || !alive(c) {
		l.after(time.Millisecond, f.finish)
		return
	}
	hook := time.Duration(0)
	spec, _, _ := specOf(f.pod, f.Container)
	if !f.SkipPreStop && f.Grace > 0 && !a.preStopRan[c.ID] && spec != nil && spec.Lifecycle != nil && spec.Lifecycle.PreStop != nil {
		hook = min(between(l.rng, time.Millisecond, 40*time.Second), f.Grace)
		l.after(hook, func() {
			if !f.dropped {
				a.preStopRan[c.ID] = true
			}
		})
		c.preStops++
	}
	killIn := f.Grace
	if f.Grace > 0 {
		killIn = max(f.Grace, hook+lifecycle.DefaultRules().MinimumGrace)
	}
	l.after(hook+time.Millisecond, func() { f.term(c) })
	l.after(killIn+2*time.Millisecond, func() { f.kill(c) })
	f.await(c, time.Millisecond)
}

func (f *flight) term(c *container) {
	l := f.agent.l
	if f.dropped || l.down {
		return
	}
	f.effective, c.termed = true, true
	if !alive(c) {
		return
	}
	code := pick(l.rng, int32(0), 143, 137)
	l.after(c.lag, func() {
		if alive(c) {
			c.killed = f.Reason
			f.agent.w.exit(c, code, "SIGTERM")
		}
	})
}

func (f *flight) kill(c *container) {
	if f.dropped || !alive(c) {
		return
	}
	if f.agent.l.down {
		f.agent.l.after(time.Second, func() { f.kill(c) })
		return
	}
	f.effective = true
	c.killed = f.Reason
	f.agent.w.exit(c, 137, "SIGKILL")
}

// await ends the stop when the process is gone, however it went.
func (f *flight) await(c *container, wait time.Duration) {
	f.agent.l.after(wait, func() {
		switch {
		case f.dropped || f.returned:
		case alive(c) && !c.removed:
			f.await(c, min(2*wait, 200*time.Millisecond))
		default:
			f.finish()
		}
	})
}

// cancel asks the action to end early. It may have won all the same.
func (f *flight) cancel() {
	if f.cancelled || f.returned {
		return
	}
	f.cancelled = true
	l := f.agent.l
	if !f.effective && l.chance(Winners, 0.4) && f.Kind != lifecycle.StopContainer && f.fate == works {
		l.trace("  %s is cancelled and wins", describe(f.Action))
		f.effect()
	}
	f.dropped = true
	f.release()
	l.after(between(l.rng, time.Millisecond, 100*time.Millisecond), f.finish)
}

// finish is the return of the call to the agent.
func (f *flight) finish() {
	a := f.agent
	f.release()
	if f.returned || f.epoch != a.epoch || a.dead {
		return
	}
	f.returned = true
	if !changesRuntime(f.Kind) {
		a.settle(f)
		a.step()
		return
	}
	f.after = a.looks
	a.look()
}

func zombieMark(f *flight) string {
	if f.zombie {
		return " (of a dead agent)"
	}
	return ""
}
