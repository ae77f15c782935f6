package observe

import (
	"context"
	"reflect"
	"sync"
	"time"

	"nodekit.dev/runtime"
)

// The reasons that a status has when the runtime did not give one.
const (
	reasonNotRead    = "RuntimeStatusNotRead"
	reasonUnanswered = "RuntimeStatusUnknown"
)

// health is the runtime's status as last read.
type health struct {
	mu     sync.Mutex
	status runtime.Status
}

func newHealth() *health {
	return &health{status: runtime.Status{Reason: reasonNotRead, Message: "the runtime's status was not read yet"}}
}

func (h *health) last() runtime.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.status
}

// set keeps the status and gives the one before.
func (h *health) set(s runtime.Status) (before runtime.Status) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before = h.status
	h.status = s
	return before
}

// runHealth asks for the runtime's health over and over, more often while it
// is not ready, because pods wait for it.
func (o *Observer) runHealth(ctx context.Context) error {
	for {
		now := o.readHealth(ctx)
		wait := o.cfg.StatusInterval
		if !now.RuntimeReady || !now.NetworkReady {
			wait = min(wait, o.cfg.RelistMin)
		}
		for _, uid := range o.quarantine.over(time.Now()) {
			o.hints.add(runtime.Hint{UID: uid})
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// readHealth asks once and tells of what changed.
func (o *Observer) readHealth(ctx context.Context) runtime.Status {
	bounded, cancel := context.WithTimeout(ctx, o.cfg.StatusTimeout)
	defer cancel()
	now, err := o.source.Status(bounded)
	if err != nil {
		if ctx.Err() != nil {
			return o.health.last() // stopping, not failing
		}
		now = unanswered(o.health.last(), err)
	} else {
		now.ReadyAt = readyAt(o.health.last(), now, time.Now())
	}
	before := o.health.set(now)
	if before.RuntimeReady != now.RuntimeReady || before.NetworkReady != now.NetworkReady {
		o.cfg.Log.Info("the runtime's health changed", "runtimeReady", now.RuntimeReady,
			"networkReady", now.NetworkReady, "reason", now.Reason, "message", now.Message)
		o.hints.add(runtime.Hint{})
	}
	if isNew(before, now) {
		poke(o.newRuntime)
	}
	if !sameHealth(before, now) {
		o.cfg.Trace.Health(now)
	}
	return now
}

// readyAt keeps when the runtime was last ready, while it is not.
func readyAt(last, now runtime.Status, at time.Time) time.Time {
	if now.RuntimeReady {
		return at
	}
	return last.ReadyAt
}

// sameHealth compares all but the time of the answer.
func sameHealth(a, b runtime.Status) bool {
	a.ReadyAt, b.ReadyAt = time.Time{}, time.Time{}
	return reflect.DeepEqual(a, b)
}

// unanswered keeps what was known of the runtime. Its network is not said to
// be gone: nobody said so, and the pods that run still use it.
func unanswered(last runtime.Status, err error) runtime.Status {
	last.RuntimeReady = false
	last.Reason, last.Message = reasonUnanswered, err.Error()
	return last
}

// isNew says that the runtime came back or is another one, which may have
// what the one before had not.
func isNew(before, now runtime.Status) bool {
	return now.RuntimeReady && (!before.RuntimeReady || before.Version != now.Version || before.APIVersion != now.APIVersion)
}
