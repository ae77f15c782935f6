package main

import (
	"cmp"
	"context"
	"slices"

	"nodekit.dev/node"
	"nodekit.dev/runtime"
)

// watchOver tells the node that a process has ended.
func (e *engine) watchOver(p *process) {
	p.wait()
	select {
	case e.hints <- runtime.Hint{UID: p.sandbox.cfg.UID}:
	case <-e.closed:
	}
}

// Hints implements [node.Watcher].
func (e *engine) Hints() <-chan runtime.Hint { return e.hints }

// Status implements [node.Watcher]: what runs processes is always well.
func (e *engine) Status() runtime.Status {
	return runtime.Status{Name: "process", Version: "1", APIVersion: "v1", RuntimeReady: true, NetworkReady: true}
}

// Look implements [node.Watcher].
func (e *engine) Look(_ context.Context, req node.LookRequest) (node.LookResult, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return node.LookResult{Pod: e.pod(req.UID)}, nil
}

// List implements [node.Watcher].
func (e *engine) List(context.Context) ([]runtime.Pod, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	uids := map[string]bool{}
	var pods []runtime.Pod
	for _, s := range e.sandboxes {
		if uid := s.cfg.UID; !uids[uid] {
			uids[uid] = true
			pods = append(pods, e.pod(uid))
		}
	}
	return pods, nil
}

// pod is all that there is of one pod, in the order that runtime.Pod promises.
func (e *engine) pod(uid string) runtime.Pod {
	pod := runtime.Pod{UID: uid}
	for _, s := range e.sandboxes {
		if s.cfg.UID == uid {
			pod.Namespace, pod.Name = s.cfg.Namespace, s.cfg.Name
			pod.Sandboxes = append(pod.Sandboxes, s.seen())
		}
	}
	for _, p := range e.processes {
		if p.sandbox.cfg.UID == uid {
			pod.Containers = append(pod.Containers, p.seen())
		}
	}
	slices.SortFunc(pod.Sandboxes, func(a, b runtime.Sandbox) int { return cmp.Compare(b.Attempt, a.Attempt) })
	slices.SortFunc(pod.Containers, func(a, b runtime.Container) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(b.Attempt, a.Attempt))
	})
	return pod
}

func (s *sandbox) seen() runtime.Sandbox {
	return runtime.Sandbox{
		ID: s.id, Attempt: s.cfg.Attempt, Ready: s.ready, CreatedAt: s.created,
		HostNetwork: s.cfg.Security.Namespaces.Network == runtime.NamespaceNode,
		Labels:      s.cfg.Labels, Annotations: s.cfg.Annotations,
	}
}

func (p *process) seen() runtime.Container {
	c := runtime.Container{
		ID: p.id, SandboxID: p.sandbox.id, Name: p.cfg.Name, Attempt: p.cfg.Attempt,
		State: runtime.ContainerRunning, CreatedAt: p.started, StartedAt: p.started,
		Image: p.cfg.Image.Requested, ImageID: p.cfg.Image.Ref, LogPath: p.log,
		Labels: p.cfg.Labels, Annotations: p.cfg.Annotations,
	}
	if !p.ended() {
		return c
	}
	c.State, c.FinishedAt, c.Message = runtime.ContainerExited, p.finished, p.said
	c.ExitCode, c.Reason = int32(p.exit.ExitStatus()), "Completed" //nolint:gosec // 0 to 255
	if p.exit.Signaled() {
		c.Signal = int32(p.exit.Signal()) //nolint:gosec // a small number
		c.ExitCode = 128 + c.Signal
	}
	if c.ExitCode != 0 {
		c.Reason = "Error"
	}
	return c
}
