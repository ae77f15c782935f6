package runtimetest

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"nodekit.dev/runtime"
)

// container is one container.
type container struct {
	id      string
	cfg     runtime.ContainerConfig
	pod     *pod
	sandbox *sandbox
	imageID string

	state                      runtime.ContainerState
	created, started, finished time.Time
	end                        ending
	does                       Behaviour
	done                       chan struct{} // closed when it exited
	log                        *logFile
	// grace is that of the last stop; nil: none was asked for.
	grace *time.Duration
}

// CreateContainer makes a container in a sandbox, whose configuration is given
// again as the CRI does, and returns its ID.
func (w *World) CreateContainer(ctx context.Context, sandboxID string, cfg runtime.ContainerConfig, sandbox runtime.SandboxConfig) (string, error) {
	w.report.Helper()
	w.checkForbidden(sandbox.UID, sandbox.Namespace, sandbox.Name, cfg.Name, "a container is created")
	c := w.sandboxCall(MethodCreateContainer, sandboxID)
	c.container = cfg.Name
	var id string
	err := w.do(ctx, c, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		var err error
		id, err = w.createLocked(sandboxID, cfg, sandbox)
		return err
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

func (w *World) createLocked(sandboxID string, cfg runtime.ContainerConfig, sandbox runtime.SandboxConfig) (string, error) {
	w.report.Helper()
	s := w.sandboxes[sandboxID]
	if s == nil {
		return "", notFound("failed to find sandbox id %q", sandboxID)
	}
	if cfg.Name == "" {
		return "", status.Error(codes.InvalidArgument, "container config must include a name")
	}
	if err := w.judgeSandboxLocked(s, cfg.Name); err != nil {
		return "", err
	}
	c := &container{cfg: cfg, pod: s.pod, sandbox: s, state: runtime.ContainerCreated, created: time.Now(), done: make(chan struct{})}
	if err := w.judgeNewContainerLocked(c, sandbox); err != nil {
		return "", err
	}
	c.does = w.scripts.of(c)
	if c.does.CreateError != nil {
		return "", c.does.CreateError
	}
	c.id = w.newIDLocked("container")
	w.containers[c.id] = c
	s.pod.containers = append(s.pod.containers, c)
	w.images.use(c.imageID, +1)
	w.emitLocked(EventCreated, s, c.id)
	return c.id, nil
}

// judgeSandboxLocked refuses a sandbox that is not ready, and reports an agent
// that could have known.
func (w *World) judgeSandboxLocked(s *sandbox, name string) error {
	w.report.Helper()
	if s.ready {
		return nil
	}
	switch {
	case s.stopped:
		w.violateLocked(RuleDeadSandbox, s.pod, name, "sandbox %s was stopped before", s.id)
	case !s.seenDead.IsZero() && time.Since(s.seenDead) > deadSandboxPatience:
		w.violateLocked(RuleDeadSandbox, s.pod, name, "sandbox %s is not ready, as the agent knows for %s", s.id, time.Since(s.seenDead))
	}
	return status.Errorf(codes.FailedPrecondition, "sandbox %q is not running", s.id)
}

func (w *World) judgeNewContainerLocked(c *container, claimed runtime.SandboxConfig) error {
	w.report.Helper()
	name := c.cfg.Name
	if claimed.UID != c.pod.uid {
		w.violateLocked(RuleForeignSandbox, c.pod, name, "sandbox %s was given a container of pod %s/%s (UID %s)", c.sandbox.id, claimed.Namespace, claimed.Name, claimed.UID)
	}
	if wrong := stockContainer(c.sandbox.cfg, c.cfg); len(wrong) > 0 {
		w.violateLocked(RuleStock, c.pod, name, "%s", strings.Join(wrong, "; "))
	}
	for _, other := range c.pod.containers {
		if other.cfg.Name != name || other.cfg.Attempt < c.cfg.Attempt {
			continue
		}
		w.violateLocked(RuleAttempt, c.pod, name, "attempt %d comes after attempt %d (%s)", c.cfg.Attempt, other.cfg.Attempt, other.id)
		if other.cfg.Attempt == c.cfg.Attempt {
			return status.Errorf(codes.Unknown, "failed to reserve container name: it is reserved for %q", other.id)
		}
	}
	image := w.images.find(c.cfg.Image.Ref)
	if image == nil {
		w.violateLocked(RuleImageMissing, c.pod, name, "image %q is not there", c.cfg.Image.Ref)
		return notFound("failed to resolve image %q", c.cfg.Image.Ref)
	}
	c.imageID = image.info.ID
	return nil
}

// StartContainer starts a created container.
func (w *World) StartContainer(ctx context.Context, id string) error {
	w.report.Helper()
	return w.do(ctx, w.containerCall(MethodStartContainer, id), func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.startLocked(id)
	})
}

func (w *World) startLocked(id string) error {
	w.report.Helper()
	c := w.containers[id]
	if c == nil {
		return notFound("an error occurred when try to find container %q", id)
	}
	if c.state != runtime.ContainerCreated {
		w.violateLocked(RuleStartTwice, c.pod, c.cfg.Name, "container %s is started in state %s", id, c.state)
		return status.Errorf(codes.FailedPrecondition, "container %q is in state %s", id, c.state)
	}
	if err := w.judgeSandboxLocked(c.sandbox, c.cfg.Name); err != nil {
		return err
	}
	for _, other := range c.pod.containers {
		if other.cfg.Name == c.cfg.Name && other.state == runtime.ContainerRunning {
			w.violateLocked(RuleTwoCopies, c.pod, c.cfg.Name, "container %s is started while %s runs", id, other.id)
		}
	}
	return w.beginLocked(c)
}

// StopContainer signals the container and kills it when grace is over. It
// returns when the container has ended. When ctx ends before, the kill that
// this call had planned does not come, as with a real runtime.
func (w *World) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	w.report.Helper()
	return w.do(ctx, w.containerCall(MethodStopContainer, id), func() error {
		done := w.askToStop(id, grace)
		if done == nil {
			return nil
		}
		if grace > 0 {
			if err := w.pause(ctx, grace, done); err != nil {
				return err
			}
		}
		w.kill(id)
		return nil
	})
}

// askToStop sends the stop signal; it returns nil when nothing runs.
func (w *World) askToStop(id string, grace time.Duration) <-chan struct{} {
	w.report.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.containers[id]
	if c == nil || c.state != runtime.ContainerRunning {
		return nil
	}
	if c.grace != nil && grace > *c.grace {
		w.violateLocked(RuleGraceGrew, c.pod, c.cfg.Name, "container %s is stopped with grace %s after %s", id, grace, *c.grace)
	}
	c.grace = &grace
	if grace > 0 {
		w.signalLocked(c)
	}
	return c.done
}

func (w *World) kill(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.containers[id]; c != nil && c.state == runtime.ContainerRunning {
		w.exitLocked(c, killed)
	}
}

// RemoveContainer removes a container. One that is gone is fine.
func (w *World) RemoveContainer(ctx context.Context, id string) error {
	w.report.Helper()
	return w.do(ctx, w.containerCall(MethodRemoveContainer, id), func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		c := w.containers[id]
		if c == nil {
			return nil
		}
		if c.state == runtime.ContainerRunning {
			w.violateLocked(RuleRemoveRunning, c.pod, c.cfg.Name, "container %s is removed while it runs", id)
			w.exitLocked(c, killed)
		}
		w.removeContainerLocked(c)
		w.forgetLocked(c.pod)
		return nil
	})
}

func (w *World) removeContainerLocked(c *container) {
	delete(w.containers, c.id)
	c.pod.containers = slices.DeleteFunc(c.pod.containers, func(o *container) bool { return o == c })
	w.images.use(c.imageID, -1)
	w.emitLocked(EventDeleted, c.sandbox, c.id)
}

// UpdateContainer sets the resources of a container that has not ended.
func (w *World) UpdateContainer(ctx context.Context, id string, r runtime.Resources) error {
	w.report.Helper()
	return w.do(ctx, w.containerCall(MethodUpdateContainer, id), func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		c := w.containers[id]
		if c == nil {
			return notFound("failed to find container %q", id)
		}
		if c.state == runtime.ContainerExited {
			return status.Errorf(codes.FailedPrecondition, "container %q is not created or running", id)
		}
		c.cfg.Resources = r
		return nil
	})
}

func (w *World) containerCall(m Method, id string) call {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.containers[id]; c != nil {
		return call{method: m, uid: c.pod.uid, container: c.cfg.Name}
	}
	if !w.existedLocked(id) {
		w.violateLocked(RuleUnknownID, nil, "", "%s names container %q, which never existed", m, id)
	}
	return call{method: m}
}
