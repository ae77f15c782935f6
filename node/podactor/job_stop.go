package podactor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

// errNoHandlers says that a handler can not run at all.
var errNoHandlers = errors.New("this agent runs no lifecycle handlers")

// stopContainer runs the preStop hook and stops the container. The grace
// counts from the start, hook included; after the hook the container always
// gets the minimum grace to handle its signal.
func (j *job) stopContainer(ctx context.Context) (effect, error) {
	killAt := time.Now().Add(j.action.Grace)
	ran := j.preStop(ctx)
	remember := func(r *run) {
		if ran {
			r.preStopRan[j.action.ContainerID] = true
		}
	}
	if err := ctx.Err(); err != nil { // cut short: the next stop has another grace
		return remember, err
	}
	grace := time.Until(killAt)
	if j.action.Grace <= 0 {
		grace = 0
	} else {
		grace = max(grace, j.minGrace)
	}
	err := j.parts.Engine.StopContainer(ctx, StopContainerRequest{ContainerID: j.action.ContainerID, Grace: grace})
	return remember, err
}

// preStop runs the container's preStop hook, if it has one and there is time.
// It says whether the hook is over, so that a second stop does not run it
// again; a hook that failed is over, too.
func (j *job) preStop(ctx context.Context) (over bool) {
	if j.action.SkipPreStop || j.preStopRan || j.action.Grace <= 0 {
		return j.preStopRan
	}
	req, err := j.preStopRequest()
	if err == nil && req.Handler == nil {
		return true
	}
	if err == nil {
		hookCtx, cancel := context.WithTimeout(ctx, j.action.Grace)
		defer cancel()
		err = j.runHandler(hookCtx, req)
	}
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		j.log.Warn("preStop hook failed; stopping the container all the same",
			"container", j.action.Container, "containerID", j.action.ContainerID, "err", err)
		j.event(lifecycle.EventWarning, "FailedPreStopHook", "PreStopHook failed")
	}
	return true
}

// preStopRequest finds the hook in the spec, or for an orphan in what the
// agent that started the container wrote on it.
func (j *job) preStopRequest() (HandlerRequest, error) {
	req := HandlerRequest{
		Pod: j.pod, Container: j.action.Container, ContainerID: j.action.ContainerID, PodIPs: j.podIPs,
	}
	if spec, err := j.spec(); err == nil {
		if spec.Lifecycle != nil {
			req.Handler = spec.Lifecycle.PreStop
		}
		return req, nil
	}
	handler, ports, err := handlerOnContainer(j.container)
	if err != nil || handler == nil {
		return req, err
	}
	req.Handler = handler
	req.Pod = j.pod.DeepCopy() // with as much of the spec as a handler looks at
	req.Pod.Spec.Containers = []corev1.Container{{
		Name: j.action.Container, Ports: ports, Lifecycle: &corev1.Lifecycle{PreStop: handler},
	}}
	return req, nil
}

// handlerOnContainer reads the annotations that keep the preStop hook and the
// ports that it may name.
func handlerOnContainer(c runtime.Container) (*corev1.LifecycleHandler, []corev1.ContainerPort, error) {
	text := c.Annotations[runtime.AnnotationPreStopHandler]
	if text == "" {
		return nil, nil, nil
	}
	var handler corev1.LifecycleHandler
	if err := json.Unmarshal([]byte(text), &handler); err != nil {
		return nil, nil, fmt.Errorf("annotation %s: %w", runtime.AnnotationPreStopHandler, err)
	}
	var ports []corev1.ContainerPort
	if text := c.Annotations[runtime.AnnotationContainerPorts]; text != "" {
		if err := json.Unmarshal([]byte(text), &ports); err != nil {
			return nil, nil, fmt.Errorf("annotation %s: %w", runtime.AnnotationContainerPorts, err)
		}
	}
	return &handler, ports, nil
}

// postStart runs the container's postStart hook. How it ended is what it is
// about, so a failed hook is no failed action.
func (j *job) postStart(ctx context.Context) (effect, error) {
	spec, err := j.spec()
	if err != nil {
		return nil, err
	}
	result := lifecycle.PostStart{Done: true}
	if spec.Lifecycle != nil && spec.Lifecycle.PostStart != nil {
		err = j.runHandler(ctx, HandlerRequest{
			Pod: j.pod, Container: spec.Name, ContainerID: j.action.ContainerID,
			Handler: spec.Lifecycle.PostStart, PodIPs: j.podIPs,
		})
		if ctx.Err() != nil { // the hook was called off, which says nothing about it
			return nil, ctx.Err()
		}
		if err != nil {
			result.Failed, result.Message = true, err.Error()
		}
	}
	return func(r *run) {
		if r.seen.PostStart == nil {
			r.seen.PostStart = map[string]lifecycle.PostStart{}
		}
		r.seen.PostStart[j.action.ContainerID] = result
	}, nil
}

func (j *job) runHandler(ctx context.Context, req HandlerRequest) error {
	if j.parts.Handlers == nil {
		return errNoHandlers
	}
	return j.parts.Handlers.RunHandler(ctx, req)
}

// tell passes on what a part has to say about the container of the action.
func (j *job) tell(e lifecycle.Event) { j.event(e.Type, e.Reason, e.Message) }

// event tells the user about something that only the job knows.
func (j *job) event(kind lifecycle.EventType, reason, message string) {
	event := lifecycle.Event{Type: kind, Reason: reason, Message: message, Container: j.action.Container}
	j.inbox.put(func(n *news) { n.events = append(n.events, event) })
}
