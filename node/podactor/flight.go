package podactor

import (
	"context"
	"errors"
	"time"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/internal/tasks"
	"nodekit.dev/node/lifecycle"
)

// flight is one action under way. Its key is busy from start to settle.
type flight struct {
	action    lifecycle.Action
	started   time.Time
	cancel    context.CancelFunc
	cancelled bool
	// out is set once the action returned and only the look at what it left
	// behind is missing; any look numbered above after will do.
	out   *outcome
	after uint64
}

// outcome is how an action ended.
type outcome struct {
	key    lifecycle.Key
	effect effect // may be nil; applies also when err is not nil
	err    error
	at     time.Time
}

// effect is what an action found out, to be written down when its key leaves
// busy. It runs in the actor's goroutine.
type effect func(*run)

// changesRuntime says that what an action left behind is to be seen in the
// runtime, also when it failed or was cancelled: a cancelled start may have won.
func changesRuntime(kind lifecycle.Kind) bool {
	switch kind {
	case lifecycle.RunSandbox, lifecycle.StopSandbox, lifecycle.RemoveSandbox,
		lifecycle.StartContainer, lifecycle.StopContainer, lifecycle.RemoveContainer:
		return true
	case lifecycle.Admit, lifecycle.RunHooksPrepare, lifecycle.RunHooksStopping, lifecycle.RunHooksCleanup,
		lifecycle.EnsureCgroup, lifecycle.RemoveCgroup, lifecycle.Mount, lifecycle.Unmount, lifecycle.Pull,
		lifecycle.RunPostStart, lifecycle.RemovePodDir:
	}
	return false
}

// start begins an action as a task of its own.
func (r *run) start(action lifecycle.Action) {
	if r.flights[action.Key] != nil {
		r.log.Error("planned an action whose key is busy", "action", action.Kind, "key", action.Key)
		return
	}
	r.log.Debug("start", "action", action.Kind, "key", action.Key, "phase", r.mem.Phase, "reason", action.Reason)
	ctx, cancel := context.WithCancel(r.group.Context())
	r.flights[action.Key] = &flight{action: action, started: time.Now(), cancel: cancel}
	job := r.job(action)
	r.group.Go(string(action.Kind), func(context.Context) error {
		defer cancel()
		out := outcome{key: action.Key}
		out.err = tasks.Contain(string(action.Kind), func() (err error) {
			out.effect, err = job.do(ctx)
			return err
		})
		out.at = time.Now()
		r.inbox.put(func(n *news) { n.outcomes = append(n.outcomes, out) })
		return nil
	})
}

// cancel asks an action to end early; it still reports an outcome.
func (r *run) cancel(key lifecycle.Key) {
	if f := r.flights[key]; f != nil && !f.cancelled {
		r.log.Debug("cancel", "action", f.action.Kind, "key", key)
		f.cancelled = true
		f.cancel()
	}
}

// landed notes the end of an action. What changed the runtime stays busy until
// a look that started after this moment is back.
func (r *run) landed(out outcome) {
	f := r.flights[out.key]
	f.out = &out
	if observe := r.parts.Observer.ActionDone; observe != nil {
		observe(ActionInfo{UID: r.want.UID, Kind: f.action.Kind, Container: f.action.Container, Took: out.at.Sub(f.started), Err: out.err})
	}
	if !changesRuntime(f.action.Kind) {
		r.settle(f)
		return
	}
	f.after = r.looks.started
	r.lookNow()
}

// settle writes down what an action left behind and frees its key.
func (r *run) settle(f *flight) {
	key := f.action.Key
	delete(r.flights, key)
	if f.out.effect != nil {
		f.out.effect(r)
	}
	switch err := f.out.err; {
	case err == nil:
		delete(r.seen.Failed, key)
	case f.cancelled && endedEarly(err):
		// It did what it was told. No failure, so that the next action on this
		// key does not wait.
	default:
		r.failed(f, err)
	}
}

// failed records a failure and when to try again.
func (r *run) failed(f *flight, err error) {
	key := f.action.Key
	count := r.seen.Failed[key].Count + 1
	failure := lifecycle.Failure{
		Kind:    f.action.Kind,
		Reason:  reasoned.Reason(err, fallbackReason(f.action.Kind)),
		Message: err.Error(),
		At:      f.out.at,
		Began:   f.started,
		RetryAt: f.out.at.Add(reasoned.RetryAfter(err, r.backoff(count))),
		Count:   count,
		Fatal:   reasoned.Fatal(err),
	}
	if r.seen.Failed == nil {
		r.seen.Failed = map[lifecycle.Key]lifecycle.Failure{}
	}
	r.seen.Failed[key] = failure
	if f.action.Kind == lifecycle.StartContainer {
		delete(r.seen.Images, f.action.Container) // perhaps it is gone: the next try asks for it again
	}
	r.log.Warn("action failed", "action", f.action.Kind, "key", key, "phase", r.mem.Phase,
		"reason", failure.Reason, "count", count, "retryIn", failure.RetryAt.Sub(failure.At), "err", err)
}

func endedEarly(err error) bool {
	return errors.Is(err, context.Canceled) || grpcCanceled(err)
}

// grpcCanceled knows a cancelled call by what it says of itself: errors of
// gRPC do not unwrap to the context's.
func grpcCanceled(err error) bool {
	var c interface{ Canceled() bool }
	return errors.As(err, &c) && c.Canceled()
}

// fallbackReason is the stock kubelet's word for a failed step whose error has
// no reason of its own. Words for steps that it does not have are ours.
func fallbackReason(kind lifecycle.Kind) string {
	switch kind {
	case lifecycle.Admit:
		return "AdmissionFailed"
	case lifecycle.RunHooksPrepare:
		return "FailedPrepareHook"
	case lifecycle.RunHooksStopping:
		return "FailedStoppingHook"
	case lifecycle.RunHooksCleanup:
		return "FailedCleanupHook"
	case lifecycle.EnsureCgroup:
		return "FailedCreatePodContainer"
	case lifecycle.RemoveCgroup:
		return "FailedRemovePodContainer"
	case lifecycle.Mount:
		return "FailedMount"
	case lifecycle.Unmount:
		return "FailedUnMount"
	case lifecycle.Pull:
		return "ErrImagePull"
	case lifecycle.RunSandbox:
		return "FailedCreatePodSandBox"
	case lifecycle.StopSandbox, lifecycle.RemoveSandbox:
		return "FailedKillPod"
	case lifecycle.StartContainer:
		return "RunContainerError"
	case lifecycle.StopContainer, lifecycle.RemoveContainer:
		return "KillContainerError"
	case lifecycle.RunPostStart:
		return "FailedPostStartHook"
	case lifecycle.RemovePodDir:
		return "FailedRemovePodDir"
	}
	return "UnknownAction"
}
