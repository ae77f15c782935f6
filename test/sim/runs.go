package sim

import (
	"iter"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
)

// lagOf is how long a process takes to end after SIGTERM.
func (l *life) lagOf() time.Duration {
	if l.chance(Stubborn, 0.15) {
		return time.Hour
	}
	return between(l.rng, time.Millisecond, 8*time.Second)
}

// planRun draws how a run goes on by itself.
func (l *life) planRun(w *world, c *container, pod *corev1.Pod, spec *corev1.Container, what role) {
	l.planProbes(w, c, spec)
	lasts, code := between(l.rng, 10*time.Millisecond, 20*time.Minute), int32(0)
	badCode := pick(l.rng, int32(1), 2, exitRestart, exitRestartAll)
	bad := l.chance(Exits, 0.3)
	if bad {
		code = badCode
	}
	switch {
	case what == initC:
		lasts = min(lasts, 20*time.Second)
	case endless(pod, spec, what) && (l.healed || !l.chance(Exits, 0.4)):
		return // runs for ever
	case !bad && l.healed:
		lasts = min(lasts, time.Minute)
	}
	l.after(lasts, func() {
		if l.healed && bad { // it was to crash, and all healed
			if !endless(pod, spec, what) {
				w.exit(c, 0, "")
			}
			return
		}
		w.exit(c, code, "")
	})
}

// healRun makes a run that is under way end as it should.
func (l *life) healRun(inc *incarnation, c *container) {
	if !alive(c) {
		return
	}
	c.lag = min(c.lag, 5*time.Second)
	if c.termed { // by an agent that may be dead: it ends now, not an hour later
		l.after(c.lag, func() { inc.w.exit(c, 143, "SIGTERM") })
	}
	spec, what, _ := specOf(inc.pod, c.Name)
	if spec == nil {
		return
	}
	if !endless(inc.pod, spec, what) {
		l.after(between(l.rng, time.Second, time.Minute), func() { inc.w.exit(c, 0, "") })
	}
	c.sick = false
	l.planProbes(inc.w, c, spec)
}

// planProbes has the prober tell of a new run: not started, not ready, and
// after a while both.
func (l *life) planProbes(w *world, c *container, spec *corev1.Container) {
	if spec.StartupProbe == nil && spec.ReadinessProbe == nil && spec.LivenessProbe == nil {
		return
	}
	yes, no := true, false
	tell := func(started, ready *bool) func() {
		return func() {
			p := lifecycle.Probe{ContainerID: c.ID}
			if spec.StartupProbe != nil {
				c.started = c.started || (alive(c) && *started)
			}
			p.Started, p.Ready = started, ready
			l.tellProbe(w, c, p)
		}
	}
	l.after(2*time.Millisecond, tell(&no, &no))
	up := between(l.rng, 10*time.Millisecond, time.Minute)
	l.after(up, tell(&yes, &no))
	l.after(up+between(l.rng, 10*time.Millisecond, 10*time.Second), tell(&yes, &yes))
}

// tellProbe brings the prober's word to the agent that runs the pod. Of a dead
// container there is no news.
func (l *life) tellProbe(w *world, c *container, p lifecycle.Probe) {
	if !alive(c) {
		return
	}
	for _, a := range l.agents {
		if a.w == w && !a.dead && !a.over && !a.want.Held && a.want.Pod != nil {
			if old := a.seen.Probes[c.Name]; old.ContainerID == c.ID && old.Unhealthy && !l.healed {
				p.Unhealthy = true
			}
			a.seen.Probes[c.Name] = probed(a.want.Pod, c.Name, p)
			a.step()
		}
	}
}

// probed leaves what the pod the agent runs has a probe for: the plan may have
// been made for another pod of the same UID, with other probes.
func probed(pod *corev1.Pod, name string, p lifecycle.Probe) lifecycle.Probe {
	spec, _, _ := specOf(pod, name)
	if spec == nil || spec.StartupProbe == nil {
		p.Started = nil
	}
	if spec == nil || spec.ReadinessProbe == nil {
		p.Ready = nil
	}
	return p
}

// probeNews has one probe change its mind.
func (l *life) probeNews(inc *incarnation) {
	up := slices.DeleteFunc(slices.Clone(inc.w.containers), func(c *container) bool { return !alive(c) })
	if len(up) == 0 {
		return
	}
	c := pick(l.rng, up...)
	spec, _, _ := specOf(inc.pod, c.Name)
	a := inc.agent
	if spec == nil || a.dead {
		return
	}
	p, found := a.seen.Probes[c.Name]
	if !found || p.ContainerID != c.ID {
		return
	}
	switch {
	case spec.LivenessProbe != nil && l.rng.IntN(2) == 0:
		p.Unhealthy = true
		if l.rng.IntN(3) == 0 {
			grace := pick(l.rng, 0, time.Second, time.Minute)
			p.Grace = &grace
		}
		c.sick = true
	case spec.ReadinessProbe != nil && p.Ready != nil:
		ready := !*p.Ready
		p.Ready = &ready
	default:
		return
	}
	l.trace("prober: %s unhealthy %v", c.ID, p.Unhealthy)
	l.tellProbe(inc.w, c, p)
}

func mapsValues[K comparable, V any](m map[K]V) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}
