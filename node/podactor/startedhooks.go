package podactor

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

// startedCall is a Started hook that is told of one container until it works.
type startedCall struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

// started tells the vendor's hooks of the container that the job has started.
// One that fails is tried again beside the pod, which goes on: a hook looks at
// pods from outside, and its trouble is no reason to hold what runs.
func (j *job) started(ctx context.Context, id string) effect {
	if j.parts.Hooks == nil {
		return nil
	}
	err := j.callStarted(ctx, j.pod, j.action.Container, id)
	if ctx.Err() != nil {
		return nil // called off, which says nothing: told again if the container runs on
	}
	return func(r *run) {
		if err == nil {
			r.told[id] = nil
			return
		}
		r.tellStarted(j.action.Container, id, 1)
	}
}

// callStarted calls the hook once.
func (a *Actor) callStarted(ctx context.Context, pod *corev1.Pod, container, id string) error {
	return tasks.Contain("Started", func() error { return a.parts.Hooks.Started(ctx, pod, container, id) })
}

// keepStartedHooks tells the hooks of every container that runs and that they
// were not told of, as an earlier agent may have died before it did. It gives
// up on containers that are gone, and on all when the pod ends.
func (r *run) keepStartedHooks() {
	if r.parts.Hooks == nil {
		return
	}
	ending := r.mem.Ending != nil
	for id, call := range r.told {
		gone := !r.shows(id)
		if call != nil && (gone || ending) {
			call.cancel()
		}
		if gone && (call == nil || call.over()) {
			delete(r.told, id)
		}
	}
	if ending || !r.seen.Prepared || r.want.Pod == nil {
		return
	}
	for _, c := range r.seen.Runtime.Containers {
		if _, told := r.told[c.ID]; told || c.State != runtime.ContainerRunning || r.isStarting(c.Name) {
			continue
		}
		r.tellStarted(c.Name, c.ID, 0)
	}
}

// shows says whether the runtime still has that container.
func (r *run) shows(id string) bool {
	for _, c := range r.seen.Runtime.Containers {
		if c.ID == id {
			return true
		}
	}
	return false
}

// isStarting says that a start is under way, which tells the hooks by itself.
func (r *run) isStarting(container string) bool {
	f := r.flights[lifecycle.KeyContainer(container)]
	return f != nil && f.action.Kind == lifecycle.StartContainer
}

// tellStarted calls the hook as a task until it works, after that many failures.
func (r *run) tellStarted(container, id string, failures int) {
	ctx, cancel := context.WithCancel(r.group.Context())
	call := &startedCall{cancel: cancel, ended: make(chan struct{})}
	r.told[id] = call
	pod, a := r.want.Pod, r.Actor
	r.group.Go("started-hook", func(context.Context) error {
		defer close(call.ended)
		defer cancel()
		for ; ; failures++ {
			if failures > 0 {
				select {
				case <-time.After(a.backoff(failures)):
				case <-ctx.Done():
					return nil
				}
			}
			err := a.callStarted(ctx, pod, container, id)
			if err == nil || ctx.Err() != nil {
				return nil
			}
			a.log.Warn("a hook failed after the start of a container; trying again beside the pod",
				"container", container, "containerID", id, "retryIn", a.backoff(failures+1), "err", err)
		}
	})
}

func (c *startedCall) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// startedCalls are the calls that may still be under way.
func (r *run) startedCalls() []*startedCall {
	var calls []*startedCall
	for _, call := range r.told {
		if call != nil && !call.over() {
			calls = append(calls, call)
		}
	}
	return calls
}

// afterStarted waits for the end of the calls of Started, which were told to
// end, so that no hook sees a container start after it saw the pod stop.
func (j *job) afterStarted(ctx context.Context) error {
	for _, call := range j.startedCalls {
		select {
		case <-call.ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
