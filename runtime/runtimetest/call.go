package runtimetest

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Method names one kind of call, for faults and counts.
type Method string

// The calls. Look reads one pod or one object of it, List reads all pods. Over
// the CRI, a list with a pod's UID or an ID in its filter is a Look.
const (
	MethodVersion             Method = "Version"
	MethodStatus              Method = "Status"
	MethodUpdateRuntimeConfig Method = "UpdateRuntimeConfig"
	MethodRunSandbox          Method = "RunSandbox"
	MethodStopSandbox         Method = "StopSandbox"
	MethodRemoveSandbox       Method = "RemoveSandbox"
	MethodCreateContainer     Method = "CreateContainer"
	MethodStartContainer      Method = "StartContainer"
	MethodStopContainer       Method = "StopContainer"
	MethodRemoveContainer     Method = "RemoveContainer"
	MethodUpdateContainer     Method = "UpdateContainer"
	MethodExec                Method = "Exec"
	MethodReopenLog           Method = "ReopenLog"
	MethodLook                Method = "Look"
	MethodList                Method = "List"
	MethodEvents              Method = "Events" // opening the stream
	MethodPullImage           Method = "PullImage"
	MethodImageStatus         Method = "ImageStatus"
	MethodListImages          Method = "ListImages"
	MethodRemoveImage         Method = "RemoveImage"
	MethodImageFsInfo         Method = "ImageFsInfo"
)

// call says what a call is about, as far as that is known from its arguments.
type call struct {
	method    Method
	uid       string
	container string
}

type callCount struct{ total, now, most int }

// Calls is how often a method was called so far.
func (w *World) Calls(m Method) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.countLocked(m).total
}

// MostAtOnce is the greatest number of calls of a method that were in flight together.
func (w *World) MostAtOnce(m Method) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.countLocked(m).most
}

func (w *World) countLocked(m Method) *callCount {
	n := w.calls[m]
	if n == nil {
		n = &callCount{}
		w.calls[m] = n
	}
	return n
}

// do runs one call: faults that come before, the effect, faults that come after.
func (w *World) do(ctx context.Context, c call, effect func() error) error {
	if err := w.enter(ctx, c.method); err != nil {
		return err
	}
	defer w.leave(c.method)
	hit := w.faults.match(c)
	if err := w.before(ctx, hit); err != nil {
		return err
	}
	err := effect()
	return w.after(ctx, hit, err)
}

func (w *World) enter(ctx context.Context, m Method) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.countLocked(m)
	n.total++
	if w.down {
		return errDown()
	}
	if err := ctx.Err(); err != nil {
		return contextError(err)
	}
	n.now++
	n.most = max(n.most, n.now)
	return nil
}

func (w *World) leave(m Method) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.countLocked(m).now--
}

// pause waits until d is over (never, when d is negative), until is closed,
// the caller gives up or the runtime goes down; the latter two are errors.
func (w *World) pause(ctx context.Context, d time.Duration, until <-chan struct{}) error {
	if d == 0 {
		return nil
	}
	var timer <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-timer:
		return nil
	case <-until:
		return nil
	case <-ctx.Done():
		return contextError(ctx.Err())
	case <-w.lifeOf():
		return errDown()
	}
}

func (w *World) lifeOf() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.life
}

const forever = -1 * time.Nanosecond

func errDown() error {
	return status.Error(codes.Unavailable, "runtimetest: the runtime is down")
}

// contextError keeps both classes: errors.Is sees the context's error, gRPC its code.
func contextError(err error) error { return callContextError{err} }

type callContextError struct{ error }

func (e callContextError) Unwrap() error { return e.error }

func (e callContextError) GRPCStatus() *status.Status { return status.FromContextError(e.error) }

func notFound(format string, args ...any) error {
	return status.Errorf(codes.NotFound, format, args...)
}
