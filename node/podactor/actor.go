package podactor

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/node/lifecycle"
)

// Actor runs one pod from its first wish to its end. Its methods other than
// Run never block and may be called from anywhere at any time, also before Run
// and after it returned.
type Actor struct {
	cfg   Config
	parts Parts
	first lifecycle.Want
	inbox inbox
	trace *trace
	log   *slog.Logger
}

// New checks and allocates; nothing happens before Run.
func New(cfg Config, parts Parts, want lifecycle.Want) (*Actor, error) {
	if err := CheckUID(want.UID); err != nil {
		return nil, fmt.Errorf("pod %s/%s: %w", want.Namespace, want.Name, err)
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("pod actor: config: %w", err)
	}
	if err := parts.Validate(); err != nil {
		return nil, fmt.Errorf("pod actor: %w", err)
	}
	log := parts.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Actor{
		cfg: cfg, parts: parts, first: want,
		inbox: newInbox(),
		trace: &trace{packer: parts.Packer, size: cfg.TraceSize},
		log:   log.With("pod", want.Namespace+"/"+want.Name, "uid", want.UID),
	}, nil
}

// Want folds a newer wish into what is wanted (see [lifecycle.Want.Merge]). A
// wish for another UID is ignored.
func (a *Actor) Want(want lifecycle.Want) {
	if want.UID != a.first.UID {
		return
	}
	a.inbox.put(func(n *news) {
		if n.want != nil {
			want = n.want.Merge(want)
		}
		n.want = &want
	})
}

// Poke says that the runtime may have news of this pod.
func (a *Actor) Poke() { a.Hint(time.Time{}) }

// Hint is Poke with the time, by this machine's clock, when the runtime had
// its news: a look that began after that has shown them. Zero: now.
func (a *Actor) Hint(at time.Time) {
	if at.IsZero() {
		at = time.Now()
	}
	a.inbox.put(func(n *news) {
		if at.After(n.hinted) {
			n.hinted = at
		}
	})
}

// Probe brings the prober's word on one container.
func (a *Actor) Probe(container string, probe lifecycle.Probe) {
	a.inbox.put(func(n *news) {
		if n.probes == nil {
			n.probes = map[string]lifecycle.Probe{}
		}
		n.probes[container] = probe
	})
}

// Tell hands out an event about the pod, such as that a probe failed. After
// Run returned nobody hears it.
func (a *Actor) Tell(event lifecycle.Event) {
	a.inbox.put(func(n *news) { n.events = append(n.events, event) })
}

// NetworkReady brings the runtime's word on its network.
func (a *Actor) NetworkReady(ready bool) { a.inbox.put(func(n *news) { n.network = &ready }) }

// News says that something outside the pod has changed that it may wait for: an
// object that it names, or room for it on the node. What failed for the lack of
// it is tried again soon, and an admission that said later is asked for again.
func (a *Actor) News() {
	at := time.Now()
	a.inbox.put(func(n *news) { n.news = at })
}

// Trace is what the actor decided of late, oldest first.
func (a *Actor) Trace() (Trace, error) { return a.trace.read(a.first) }

// Run lives until the pod is gone (nil) or ctx ends (its error). When ctx
// ends, calls in flight are cancelled and containers are left as they are.
func (a *Actor) Run(ctx context.Context) error {
	group := tasks.New(ctx)
	r := newRun(a, group)
	err := r.loop(group.Context())
	group.Stop()
	if werr := group.Wait(); werr != nil { // a bug of the actor: tasks report to the inbox
		err = werr
	}
	return err
}

// run is the state of one Run, owned by its goroutine alone.
type run struct {
	*Actor
	group *tasks.Group

	want lifecycle.Want
	seen lifecycle.Seen
	mem  lifecycle.Memory

	flights map[lifecycle.Key]*flight
	looks   looks
	wake    time.Time // of the last plan
	packAt  time.Time // when the trace is packed

	imageUser  map[string]string       // what images ask to run as, by container name
	preStopRan map[string]bool         // container IDs whose preStop hook is over
	told       map[string]*startedCall // by ID: containers that the Started hooks were told of; nil: done
	probed     map[string]ProbeRequest // what the prober was asked for last, by container name
	published  *StatusUpdate
}

func newRun(a *Actor, group *tasks.Group) *run {
	return &run{
		Actor: a, group: group, want: a.first,
		seen:       lifecycle.Seen{NetworkReady: a.parts.Watcher.Status().NetworkReady},
		flights:    map[lifecycle.Key]*flight{},
		imageUser:  map[string]string{},
		preStopRan: map[string]bool{},
		told:       map[string]*startedCall{},
	}
}

// loop takes news, decides, starts what was decided, and sleeps.
func (r *run) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	if !r.want.Held {
		r.lookNow()
	}
	r.step()
	for !r.over() {
		resetTimer(timer, r.alarm())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.inbox.wake:
			if r.absorb(r.inbox.take()) {
				r.step()
			}
		case <-timer.C:
			r.onAlarm(time.Now())
		}
	}
	r.forgetProbes()
	return nil
}

// alarm is when to wake without news; zero: never.
func (r *run) alarm() (first time.Time) {
	for _, at := range []time.Time{r.wake, r.looks.retryAt, r.looks.dueAt, r.packAt} {
		if first.IsZero() || (!at.IsZero() && at.Before(first)) {
			first = at
		}
	}
	return first
}

func (r *run) onAlarm(now time.Time) {
	if at := r.looks.retryAt; !at.IsZero() && !now.Before(at) {
		r.lookNow()
	}
	if at := r.looks.dueAt; !at.IsZero() && !now.Before(at) {
		r.lookNow()
	}
	if !r.packAt.IsZero() && !now.Before(r.packAt) {
		r.packAt = time.Time{}
		r.trace.pack(r.log)
	}
	if !r.wake.IsZero() && !now.Before(r.wake) {
		r.step()
	}
}

// absorb folds news into the state. It says whether there is anything to
// decide on.
func (r *run) absorb(n news) bool {
	changed := false
	r.tell(n.events)
	if n.want != nil {
		r.newWant(*n.want)
		changed = true
	}
	if n.network != nil && *n.network != r.seen.NetworkReady {
		r.seen.NetworkReady = *n.network
		changed = true
	}
	if !n.news.IsZero() {
		r.heard(n.news)
		changed = true
	}
	for name, probe := range n.probes {
		r.heardProbe(name, probe)
		changed = true
	}
	for _, out := range n.outcomes {
		r.landed(out)
		changed = true
	}
	for _, look := range n.looks {
		changed = r.looked(look) || changed
	}
	if !n.hinted.IsZero() && !r.want.Held {
		r.hinted(n.hinted)
	}
	return changed
}

// heard takes in that something changed that the pod may wait for.
func (r *run) heard(at time.Time) {
	r.seen.NewsAt = at
	if r.seen.Admission.Verdict == lifecycle.VerdictLater && r.seen.Admission.RetryAt.After(at) {
		r.seen.Admission.RetryAt = at
	}
}

// newWant merges a wish. A pod that is held does not look, as it would see the
// older pod of its UID; its first look is due when its turn comes.
func (r *run) newWant(next lifecycle.Want) {
	wasHeld, old := r.want.Held, r.want.Pod
	r.want = r.want.Merge(next)
	if r.want.Pod != old && r.mem.Phase == lifecycle.Queued {
		r.seen.Admission = lifecycle.Admission{} // the verdict was on the old one
	}
	if wasHeld && !r.want.Held {
		r.lookNow()
	}
}

// step decides once and acts on it.
func (r *run) step() {
	input := r.input(time.Now())
	plan, err := r.decide(input)
	if err != nil {
		r.log.Error("no decision: this pod stays as it is", "err", err)
		r.wake = input.Now.Add(r.cfg.RetryMax)
		return
	}
	if r.keepProbes(plan.Probes) {
		r.step() // with what the prober knows, as nothing was done or told yet
		return
	}
	rose := plan.Mem.Phase != r.mem.Phase
	r.mem = plan.Mem
	changed := r.publish(plan)
	if changed || rose || len(plan.Do)+len(plan.Cancel)+len(plan.Events) > 0 {
		r.trace.add(input, plan, r.log)
		r.packAt = input.Now.Add(traceIdle)
	}
	r.tell(plan.Events)
	for _, key := range plan.Cancel {
		r.cancel(key)
	}
	r.keepStartedHooks() // before the actions: those of hooks wait for what this calls off
	for _, action := range plan.Do {
		r.start(action)
	}
	if !plan.LookSince.IsZero() {
		r.lookSince(plan.LookSince)
	}
	r.wake = plan.Wake
	if !plan.Wake.IsZero() && !plan.Wake.After(input.Now) {
		r.wake = input.Now.Add(100 * time.Millisecond) // never spin, whatever was planned
	}
}

// decide keeps a panic of the decision inside this pod.
func (r *run) decide(input lifecycle.Input) (plan lifecycle.Plan, err error) {
	err = tasks.Contain("decide", func() error {
		plan = r.parts.Decide(input)
		return nil
	})
	return plan, err
}

// input is a view of the state; Decide keeps nothing of it, so maps are shared.
func (r *run) input(now time.Time) lifecycle.Input {
	busy := make(map[lifecycle.Key]lifecycle.Action, len(r.flights))
	for key, f := range r.flights {
		busy[key] = f.action
	}
	return lifecycle.Input{Now: now, Want: r.want, Seen: r.seen, Mem: r.mem, Busy: busy}
}

// over says that nothing of the pod is left and nothing was wanted of it any
// more. A pod that ended by itself stays until it is deleted.
func (r *run) over() bool {
	ending := r.mem.Ending
	return r.mem.Phase == lifecycle.Finished && len(r.flights) == 0 &&
		ending != nil && ending.Reason.Leaves()
}

func resetTimer(t *time.Timer, at time.Time) {
	if at.IsZero() {
		t.Stop()
		return
	}
	t.Reset(time.Until(at))
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}
