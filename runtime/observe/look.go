package observe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"nodekit.dev/internal/backoff"
	"nodekit.dev/runtime"
)

// errTookTooLong is the cause of the end of a look that is quarantined.
var errTookTooLong = errors.New("the look took too long")

// QuarantineError says that a pod is left alone, because the last look at it
// took too long.
type QuarantineError struct {
	UID  string
	Wait time.Duration // until the pod is looked at again
	err  error         // how the look ended; nil when there was none
}

func (e *QuarantineError) Error() string {
	return fmt.Sprintf("pod %s: the runtime did not answer in time; it is not asked again for %v", e.UID, e.Wait)
}

func (e *QuarantineError) Unwrap() error { return e.err }

// RetryAfter is how long to wait before the next look.
func (e *QuarantineError) RetryAfter() time.Duration { return e.Wait }

// Look reads one pod from the runtime, never from a cache. It takes at most
// Config.LookTimeout; a pod that needs longer is quarantined, and the error is
// then a *QuarantineError.
func (o *Observer) Look(ctx context.Context, uid string) (runtime.Pod, error) {
	start := time.Now()
	if wait := o.quarantine.wait(uid, start); wait > 0 {
		return runtime.Pod{}, &QuarantineError{UID: uid, Wait: wait}
	}
	o.relist.stir()
	looking, cancel := context.WithTimeoutCause(ctx, o.cfg.LookTimeout, errTookTooLong)
	defer cancel()
	pod, err := o.source.LookPod(looking, uid)
	took := time.Since(start)
	o.cfg.Trace.Looked(uid, took, err)
	switch {
	case err == nil:
		o.quarantine.release(uid)
		return pod, nil
	case context.Cause(looking) == errTookTooLong: //nolint:errorlint // the very value set above
		wait := o.quarantine.add(uid, start.Add(took))
		o.cfg.Trace.Quarantined(uid, wait)
		o.cfg.Log.Warn("the runtime does not answer for a pod; it is left alone for a while",
			"uid", uid, "took", took, "wait", wait)
		return runtime.Pod{}, &QuarantineError{UID: uid, Wait: wait, err: err}
	}
	return runtime.Pod{}, fmt.Errorf("look at pod %s: %w", uid, err)
}

// quarantine holds the pods that are left alone for a while.
type quarantine struct {
	policy backoff.Policy
	mu     sync.Mutex
	pods   map[string]*quarantined
}

type quarantined struct {
	state  backoff.State
	hinted bool // somebody was told that the quarantine is over
}

func newQuarantine(shortest, longest time.Duration) *quarantine {
	return &quarantine{
		policy: backoff.Policy{Base: shortest, Max: longest},
		pods:   map[string]*quarantined{},
	}
}

// wait is how long the pod is still left alone; 0: not at all.
func (q *quarantine) wait(uid string, now time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p := q.pods[uid]; p != nil {
		return p.state.Wait(now)
	}
	return 0
}

// add leaves the pod alone, each time in a row for longer.
func (q *quarantine) add(uid string, now time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.pods[uid]
	if p == nil {
		p = &quarantined{}
		q.pods[uid] = p
	}
	p.hinted = false
	p.state = p.state.Fail(q.policy, now, "")
	return p.state.Wait(now)
}

func (q *quarantine) release(uid string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.pods, uid)
}

// over gives the pods whose quarantine has ended since the last call, and
// forgets those that nobody has asked for since.
func (q *quarantine) over(now time.Time) []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	var uids []string
	for uid, p := range q.pods {
		switch {
		case p.state.Wait(now) > 0:
		case !p.hinted:
			p.hinted = true
			uids = append(uids, uid)
		case p.state.Expired(q.policy, now):
			delete(q.pods, uid)
		}
	}
	return uids
}
