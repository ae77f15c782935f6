package podactor

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

// looks keeps order among the looks at the runtime. Looks race: each has the
// number of its start, and what an older one brings never replaces what a
// newer one brought. Of two that overlap nobody knows which one read later: where
// they differ, a third tells.
type looks struct {
	started  uint64    // number of the newest look
	since    time.Time // when it began
	applied  uint64    // number of the newest look whose result is in Seen
	ended    time.Time // when that look was over
	flying   int
	owed     bool      // look again once the present one is back
	dueAt    time.Time // a look is due then, if none comes before
	failures int       // in a row
	retryAt  time.Time
}

// lookDone is what one look brought.
type lookDone struct {
	seq     uint64
	began   time.Time
	ended   time.Time
	pod     runtime.Pod
	volumes bool // mounts were read as well
	mounted []string
	err     error
}

// Two looks at a time are enough: one that may be stale or slow, and one that
// is known to have started late enough.
const maxLooks = 2

// hintPatience is how long a hint waits for the actions under way. Most hints
// are about what the pod's own action is doing, and the look at its end shows
// that; some are about another container of the pod.
const hintPatience = time.Second

// hinted is for hints: any look that began after what they are about will do.
func (r *run) hinted(at time.Time) {
	switch {
	case at.Before(r.looks.since):
	case r.looks.flying > 0:
		r.looks.owed = true
	default:
		r.lookSoon()
	}
}

// lookSoon looks as soon as no action is under way that ends in a look anyway.
func (r *run) lookSoon() {
	if !r.acting() {
		r.lookNow()
	} else {
		r.lookBy(time.Now().Add(hintPatience))
	}
}

// acting says that the runtime is being changed right now.
func (r *run) acting() bool {
	for _, f := range r.flights {
		if f.out == nil && changesRuntime(f.action.Kind) {
			return true
		}
	}
	return false
}

// lookNow starts a look unless too many are under way.
func (r *run) lookNow() {
	if r.looks.flying >= maxLooks {
		r.looks.owed = true
		return
	}
	r.looks.started++
	r.looks.flying++
	r.looks.retryAt, r.looks.dueAt = time.Time{}, time.Time{}
	r.looks.since = time.Now()
	seq, began, uid, volumes := r.looks.started, r.looks.since, r.want.UID, !r.seen.VolumesLooked
	r.group.Go("look", func(ctx context.Context) error {
		done := r.look(ctx, uid, volumes)
		done.seq, done.began, done.ended = seq, began, time.Now()
		r.inbox.put(func(n *news) { n.looks = append(n.looks, done) })
		return nil
	})
}

// lookSince looks unless a look began since then; one that fails is tried again.
func (r *run) lookSince(at time.Time) {
	if r.looks.since.Before(at) {
		r.lookNow()
	}
}

// look reads the pod from the runtime, and its mounts where they are not known
// yet. A panic of a part counts as an error.
func (a *Actor) look(ctx context.Context, uid string, volumes bool) (done lookDone) {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.LookTimeout)
	defer cancel()
	done.err = tasks.Contain("look", func() error {
		res, err := a.parts.Watcher.Look(ctx, LookRequest{UID: uid})
		if err != nil {
			return fmt.Errorf("look at the runtime: %w", err)
		}
		done.pod = res.Pod
		if !volumes {
			return nil
		}
		mounted, err := a.parts.Mounter.Mounted(ctx, uid)
		if err != nil {
			return fmt.Errorf("look at the mounts: %w", err)
		}
		done.volumes, done.mounted = true, mounted
		return nil
	})
	return done
}

// looked takes in what a look brought; false: nothing new.
func (r *run) looked(done lookDone) bool {
	r.looks.flying--
	changed := false
	if done.err != nil {
		r.lookFailed(done.err)
	} else {
		changed = r.lookWorked(done)
	}
	if r.looks.flying == 0 && r.looks.retryAt.IsZero() {
		r.lookAgain()
	}
	return changed
}

// lookAgain starts the look that the ones before did not stand in for.
func (r *run) lookAgain() {
	owed := r.looks.owed
	r.looks.owed = false
	switch {
	case r.unsettled():
		r.lookNow()
	case owed:
		r.lookSoon()
	}
}

// lookFailed leaves everything as it is, keys included: this pod waits alone
// until the runtime answers again.
func (r *run) lookFailed(err error) {
	r.looks.failures++
	if r.looks.failures == 1 {
		r.log.Warn("cannot see this pod in the runtime; trying again", "err", err)
	}
	r.looks.owed = false
	r.looks.retryAt = time.Now().Add(r.backoff(r.looks.failures))
}

func (r *run) lookWorked(done lookDone) bool {
	if done.seq <= r.looks.applied { // overtaken by a newer look
		return false
	}
	if done.began.Before(r.looks.ended) && !reflect.DeepEqual(done.pod, r.seen.Runtime) {
		// It may have read what the one before it, which was slower to read and
		// faster to answer, saw changed already: what ended would run again.
		r.lookSince(r.looks.ended)
		return false
	}
	if r.looks.failures > 0 {
		r.log.Info("this pod is visible in the runtime again", "failures", r.looks.failures)
	}
	r.looks.failures, r.looks.retryAt = 0, time.Time{}
	r.looks.applied, r.looks.ended = done.seq, done.ended
	r.seen.Looked = true
	r.seen.LookedAt = done.began
	r.seen.Runtime = done.pod
	r.lookAtNetwork()
	if done.volumes && !r.seen.VolumesLooked {
		r.seen.VolumesLooked = true
		r.seen.Mounted = setOf(done.mounted)
	}
	r.settleSeen()
	return true
}

// lookAtNetwork looks again when a sandbox that has no address should have one:
// the runtime tells nothing of that by itself.
func (r *run) lookAtNetwork() {
	sandbox, found := r.seen.Runtime.NewestSandbox()
	if !found || !sandbox.Ready || !sandbox.NoAddress {
		return
	}
	if at := sandbox.CreatedAt.Add(lifecycle.SettleTime); at.After(time.Now()) {
		r.lookBy(at)
	}
}

// lookBy looks at that time if no look comes before.
func (r *run) lookBy(at time.Time) {
	if r.looks.dueAt.IsZero() || at.Before(r.looks.dueAt) {
		r.looks.dueAt = at
	}
}

// settleSeen ends the flights that only waited for a look that started after
// they returned.
func (r *run) settleSeen() {
	for _, f := range r.flights {
		if f.out != nil && r.looks.applied > f.after {
			r.settle(f)
		}
	}
}

// unsettled says that some action returned and no look after it worked yet: the
// one that was to may have failed while an older one came back well.
func (r *run) unsettled() bool {
	for _, f := range r.flights {
		if f.out != nil {
			return true
		}
	}
	return false
}

// backoff is how long to wait after so many failures in a row.
func (a *Actor) backoff(failures int) time.Duration {
	wait := a.cfg.RetryBase
	for range failures - 1 {
		if wait >= a.cfg.RetryMax/2 {
			return a.cfg.RetryMax
		}
		wait *= 2
	}
	return wait
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}
