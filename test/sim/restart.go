package sim

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
)

// restartAgent kills the agent: memory, looks and alarms are gone. Calls under
// way may still take effect, once, a little later. Then another agent begins
// with what the sources and the API server say.
func (l *life) restartAgent() {
	if l.off {
		return
	}
	l.trace("agent: killed")
	l.off = true
	for _, a := range l.agents {
		a.dead = true
		for _, key := range slices.Sorted(maps.Keys(a.flights)) {
			l.abandon(a.flights[key])
		}
	}
	l.agents = nil
	l.after(between(l.rng, 10*time.Millisecond, 8*time.Second), l.bootAgent)
}

func (l *life) abandon(f *flight) {
	wins := l.chance(Zombies, 0.5) && changesRuntime(f.Kind) && !f.effective && f.fate == works &&
		f.Kind != lifecycle.StopContainer
	f.zombie = true
	if !wins {
		f.dropped = true
		f.release()
		return
	}
	l.after(between(l.rng, time.Millisecond, 4*time.Second), f.effect)
}

// bootAgent is a new process.
func (l *life) bootAgent() {
	l.off = false
	l.trace("agent: boots")
	for i, inc := range l.incs {
		if inc.gone {
			if !inc.w.empty() && !l.tended(inc.w) {
				l.orphan(inc)
			}
			continue
		}
		l.reincarnate(i, inc)
	}
	l.unhold()
}

func (l *life) reincarnate(i int, inc *incarnation) {
	newest := i == len(l.incs)-1
	deleted := inc.stop != nil && inc.stop.Reason.Leaves()
	switch {
	case !newest && l.incs[i+1].w == inc.w:
		inc.gone = true // the newer one takes over all that it finds
		inc.w.adopted = l.now
		for _, p := range inc.w.past {
			p.hazy = true
		}
		l.incs[i+1].held = false
		return
	case inc.static && deleted:
		inc.pod = inc.pod.DeepCopy()
		if inc.held || inc.w.empty() {
			inc.gone = true
			return
		}
		l.orphan(inc)
		return
	}
	if !deleted && inc.stop != nil && l.rng.IntN(2) == 0 {
		inc.stop, inc.killAt = nil, time.Time{} // who evicted it has forgotten
	}
	want := l.wantOf(inc)
	want.Prior = l.prior(inc)
	inc.w.forget(want.Prior)
	l.newAgent(inc, want)
}

// forget ends the rules on restarts and counts for containers whose last run
// nobody can know of any more. A call of a dead agent took it away: of a sandbox
// that the agent after it had put the run in. That agent knew, and told only the
// API server; of a static pod, not even that is sure.
func (w *world) forget(prior *corev1.PodStatus) {
	for name, p := range w.past {
		if last := w.last(name); last != nil && last.lost && !tellsOf(prior, last) {
			p.hazy = true
		}
	}
}

// tellsOf says that a status names that run.
func tellsOf(status *corev1.PodStatus, c *container) bool {
	if status == nil {
		return false
	}
	st := findStatus(status, c.Name)
	return st != nil && strings.HasSuffix(st.ContainerID, "://"+c.ID)
}

// prior is what the API server has of the pod: what was told last, or what was
// told before that where the last word got lost; of a static pod often nothing.
func (l *life) prior(inc *incarnation) *corev1.PodStatus {
	n := len(inc.published)
	behind := l.rng.IntN(4) == 0
	if n == 0 || (inc.static && l.rng.IntN(2) == 0) {
		return nil
	}
	word := inc.published[n-1]
	if behind {
		word = inc.published[0]
		for _, p := range inc.w.past { // nobody may know that all were to start over
			p.hazy = p.hazy || len(p.runs) > 0 && p.runs[len(p.runs)-1].voided
		}
	}
	inc.published = []*corev1.PodStatus{word}
	return word
}
