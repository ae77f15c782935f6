package sim

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

// agent runs one incarnation of a pod as node/podactor does: it hands Decide
// what it is owed, and Decide's memory back. Its fields die with it.
type agent struct {
	l     *life
	inc   *incarnation
	w     *world
	epoch int
	dead  bool // the process was killed
	over  bool // Finished, nothing left to do

	want    lifecycle.Want
	seen    lifecycle.Seen
	mem     lifecycle.Memory
	flights map[lifecycle.Key]*flight
	plan    lifecycle.Plan

	looks, applied int       // numbers of the newest look started, and taken in
	version        int       // of the world, as taken in
	lookingSince   time.Time // when the newest look began
	lookEnded      time.Time // when the one taken in was over
	failures       int       // looks in a row
	wakes          int       // number of the newest alarm
	preStopRan     map[string]bool
	peeks          bool // it looks also while it is held

	facts facts
}

func (l *life) newAgent(inc *incarnation, want lifecycle.Want) *agent {
	l.epochs++
	a := &agent{
		l: l, inc: inc, w: inc.w, epoch: l.epochs, want: want,
		flights: map[lifecycle.Key]*flight{}, preStopRan: map[string]bool{},
		facts: facts{killAt: map[string]time.Time{}, asked: map[lifecycle.Key]lifecycle.Action{}},
	}
	a.seen = lifecycle.Seen{
		NetworkReady: l.network, Mounted: map[string]bool{}, Far: map[string]bool{}, Images: map[string]lifecycle.Image{},
		Probes: map[string]lifecycle.Probe{}, PostStart: map[string]lifecycle.PostStart{},
		Failed: map[lifecycle.Key]lifecycle.Failure{},
	}
	if want.Pod != nil {
		for name := range inc.far {
			a.seen.Far[name] = true
		}
	}
	for _, c := range a.w.containers {
		c.seenAt = time.Time{}
	}
	for _, s := range a.w.sandboxes {
		s.seenAt = time.Time{}
	}
	a.peeks = l.rng.IntN(2) == 0
	inc.agent = a
	l.agents = append(l.agents, a)
	l.after(time.Millisecond, a.begin)
	return a
}

func (a *agent) begin() {
	if a.dead {
		return
	}
	if !a.want.Held || a.peeks {
		a.look()
	}
	if !a.want.Held {
		for _, c := range a.w.containers { // a new prober starts over
			if spec, _, _ := specOf(a.want.Pod, c.Name); spec != nil && alive(c) {
				a.l.planProbes(a.w, c, spec)
			}
		}
	}
	a.step()
	a.relist()
}

// relist is the slow safety net.
func (a *agent) relist() {
	if a.dead || a.over {
		return
	}
	if !a.want.Held || a.peeks {
		a.look()
	}
	a.l.after(time.Minute, a.relist)
}

// look reads the pod: what is true a moment later arrives another moment
// later. An older look never replaces what a newer one brought, nor one what
// another brought that was not over when it began, as that may have read later.
func (a *agent) look() {
	a.looks++
	number, began := a.looks, a.l.now
	a.lookingSince = began
	slow := 20 * time.Millisecond
	if a.l.chance(Stale, 0.1) {
		slow = 5 * time.Second
	}
	a.l.after(between(a.l.rng, time.Millisecond, slow), func() {
		if a.dead || a.over {
			return
		}
		if a.l.down {
			a.failures++
			if number == a.looks {
				a.l.after(backoff(a.failures), a.lookAgain)
			}
			return
		}
		view, version := a.w.view(), a.w.version
		mounted := maps.Clone(a.w.mounted)
		a.l.after(between(a.l.rng, time.Millisecond, slow), func() { a.looked(number, version, began, view, mounted) })
	})
}

func (a *agent) lookAgain() {
	if !a.dead && !a.over {
		a.look()
	}
}

func (a *agent) looked(number, version int, began time.Time, view runtime.Pod, mounted map[string]bool) {
	if a.dead || a.over || number <= a.applied || a.want.Held && !a.peeks {
		return
	}
	if began.Before(a.lookEnded) && !reflect.DeepEqual(view, a.seen.Runtime) {
		if a.lookingSince.Before(a.lookEnded) { // which one read later? a third tells
			a.look()
		}
		return
	}
	a.lookEnded = a.l.now
	news := !a.seen.Looked || version != a.version || !a.plan.LookSince.IsZero()
	a.failures, a.applied, a.version = 0, number, version
	a.seen.Looked, a.seen.LookedAt, a.seen.Runtime = true, began, view
	if !a.seen.VolumesLooked {
		a.seen.VolumesLooked, a.seen.Mounted = true, mounted
	}
	a.markSeen()
	for _, key := range slices.Sorted(maps.Keys(a.flights)) {
		if f := a.flights[key]; f.returned && f.after < number {
			a.settle(f)
			news = true
		}
	}
	if news {
		a.step()
	}
}

// markSeen ends the excuse of having been made by somebody else. What an agent
// that is held sees is no news to the one that it waits for.
func (a *agent) markSeen() {
	if a.want.Held {
		return
	}
	for _, s := range a.seen.Runtime.Sandboxes {
		if t := a.w.sandbox(s.ID); t != nil && t.seenAt.IsZero() {
			t.seenAt = a.l.now
		}
	}
	for _, c := range a.seen.Runtime.Containers {
		if t := a.w.container(c.ID); t != nil && t.seenAt.IsZero() {
			t.seenAt = a.l.now
		}
	}
}

// settle writes down what an action left behind and frees its key.
func (a *agent) settle(f *flight) {
	delete(a.flights, f.Key)
	if f.apply != nil && f.effective {
		f.apply(&a.seen)
	}
	switch f.Kind {
	case lifecycle.Mount, lifecycle.Unmount: // the host is asked
		if a.w.mounted[f.Volume] {
			a.seen.Mounted[f.Volume] = true
		} else {
			delete(a.seen.Mounted, f.Volume)
		}
	case lifecycle.RunHooksStopping:
		a.seen.StoppingDone = true
	}
	switch {
	case f.effective && f.fate == works:
		delete(a.seen.Failed, f.Key)
	case f.cancelled && f.fate == works:
	case f.Kind == lifecycle.StopContainer && f.fate == works: // it was dead before
		delete(a.seen.Failed, f.Key)
	default:
		a.failed(f)
	}
	a.l.trace("  returned %s: %s%s", describe(f.Action), f.fate, map[bool]string{true: " (cancelled)"}[f.cancelled])
}

func (a *agent) failed(f *flight) {
	count := a.seen.Failed[f.Key].Count + 1
	wait, reason := backoff(count), "RunContainerError"
	switch f.Kind {
	case lifecycle.Pull:
		wait, reason = min(10*time.Second<<min(count-1, 5), 5*time.Minute), "ErrImagePull"
	case lifecycle.StartContainer:
		if !f.effective && a.l.chance(Objects, 0.5) {
			reason = reasonConfig
		}
	}
	a.seen.Failed[f.Key] = lifecycle.Failure{
		Kind: f.Kind, Began: f.issued,
		Reason: reason, Message: string(f.fate), At: a.l.now, RetryAt: a.l.now.Add(wait), Count: count,
		Fatal: f.fate == fatality,
	}
}

// backoff is node/podactor's: 1 s, doubling to 1 min.
func backoff(failures int) time.Duration {
	return min(time.Second<<min(failures-1, 6), time.Minute)
}

// input is what Decide is shown.
func (a *agent) input() lifecycle.Input {
	busy := make(map[lifecycle.Key]lifecycle.Action, len(a.flights))
	for key, f := range a.flights {
		busy[key] = f.Action
	}
	return lifecycle.Input{Now: a.l.now, Want: a.want, Seen: a.seen, Mem: a.mem, Busy: busy}
}

// step decides once and does what was decided.
func (a *agent) step() {
	if a.dead || a.over {
		return
	}
	l := a.l
	l.steps++
	in := a.input()
	a.noteFacts()
	plan := l.decide(in)
	if l.tracing() && len(plan.Do)+len(plan.Cancel) > 0 {
		l.trace("%s %s", a.inc.name, a.describe(plan))
	}
	a.checkPlan(in, plan)
	a.checkStatus(plan)
	a.mem, a.plan = plan.Mem, plan
	a.inc.publish(plan.Status)
	for _, key := range plan.Cancel {
		if f := a.flights[key]; f != nil {
			f.cancel()
		}
	}
	for _, action := range plan.Do {
		a.start(action)
	}
	if a.lookingSince.Before(plan.LookSince) {
		a.look()
	}
	a.wakeAt(plan.Wake)
	if a.mem.Phase == lifecycle.Finished && a.mem.Ending.Reason.Leaves() && len(a.flights) == 0 {
		a.finished()
	}
}

func (a *agent) wakeAt(at time.Time) {
	a.wakes++
	number := a.wakes
	if at.IsZero() {
		return
	}
	a.l.at(at, func() {
		if number == a.wakes {
			a.step()
		}
	})
}

// finished is the end of an actor; who waited for it may start.
func (a *agent) finished() {
	a.over = true
	a.checkFinished()
	a.l.trace("%s is finished", a.inc.name)
	a.inc.gone = true
	a.l.after(time.Millisecond, a.l.unhold)
}

func (a *agent) wish(next lifecycle.Want) {
	next.UID, next.Namespace, next.Name, next.Static, next.Rules = a.want.UID, a.want.Namespace, a.want.Name, a.want.Static, a.want.Rules
	a.want = a.want.Merge(next)
	a.l.after(time.Millisecond, a.step)
}

func (a *agent) describe(plan lifecycle.Plan) string {
	s := fmt.Sprintf("%s (%s):", plan.Mem.Phase, plan.Status.Phase)
	for _, action := range plan.Do {
		s += " " + describe(action) + ";"
	}
	for _, key := range plan.Cancel {
		s += " cancel " + string(key) + ";"
	}
	return s
}

func describe(a lifecycle.Action) string {
	s := string(a.Kind)
	switch a.Kind {
	case lifecycle.StartContainer:
		s += fmt.Sprintf(" %s#%d r%d in %s", a.Container, a.Attempt, a.Restarts, a.SandboxID)
	case lifecycle.StopContainer:
		s += fmt.Sprintf(" %s grace %s", a.ContainerID, a.Grace)
	case lifecycle.RemoveContainer, lifecycle.RunPostStart:
		s += " " + a.ContainerID
	case lifecycle.Pull:
		s += " " + a.Container + " " + a.Image
	case lifecycle.RunSandbox:
		s += fmt.Sprint(" #", a.Attempt)
	default:
		s += " " + a.Volume + a.SandboxID
	}
	if a.Reason != "" {
		s += " because " + a.Reason
	}
	return s
}

// incarnation is one pod as somebody wants it: its spec, and what the API
// server knows of it, both of which outlive the agent.
type incarnation struct {
	name   string
	w      *world
	pod    *corev1.Pod
	static bool
	stop   *lifecycle.Stop
	killAt time.Time // the earliest kill that was asked for
	held   bool
	gone   bool
	agent  *agent
	far    map[string]bool

	published []*corev1.PodStatus // the last two different ones
	rejected  bool
	admitted  bool
}

func (inc *incarnation) publish(s corev1.PodStatus) {
	n := len(inc.published)
	if n > 0 && equalStatus(inc.published[n-1], &s) {
		return
	}
	inc.published = append(inc.published, s.DeepCopy())
	if n > 1 {
		inc.published = inc.published[1:]
	}
}

func (inc *incarnation) admission(l *life) lifecycle.Admission {
	switch {
	case inc.rejected:
		return lifecycle.Admission{Verdict: lifecycle.VerdictReject, Reason: "NodeAffinity", Message: "no"}
	case inc.admitted:
	case l.chance(Admission, 0.1):
		return lifecycle.Admission{Verdict: lifecycle.VerdictLater, RetryAt: l.now.Add(between(l.rng, time.Second, time.Minute))}
	case l.chance(Admission, 0.03):
		inc.rejected = true
		return inc.admission(l)
	}
	inc.admitted = true
	return lifecycle.Admission{Verdict: lifecycle.VerdictAdmit}
}
