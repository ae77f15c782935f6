package runtimetest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"nodekit.dev/runtime"
)

// Status is the runtime's view of its own health.
func (w *World) Status(ctx context.Context) (runtime.Status, error) {
	var s runtime.Status
	err := w.do(ctx, call{method: MethodStatus}, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		s = w.statusLocked()
		return nil
	})
	return s, err
}

// LookPod reads one pod. A pod that the runtime does not know is empty. Its
// cost does not depend on the number of pods.
func (w *World) LookPod(ctx context.Context, uid string) (runtime.Pod, error) {
	var view runtime.Pod
	err := w.do(ctx, call{method: MethodLook, uid: uid}, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		view = runtime.Pod{UID: uid}
		if p := w.pods[uid]; p != nil {
			view = p.view()
			p.told(time.Now())
		}
		return nil
	})
	return view, err
}

// ListPods reads all pods, sorted by UID.
func (w *World) ListPods(ctx context.Context) ([]runtime.Pod, error) {
	var all []runtime.Pod
	err := w.do(ctx, call{method: MethodList}, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		now := time.Now()
		for _, uid := range w.uidsLocked() {
			p := w.pods[uid]
			if len(p.sandboxes) == 0 && len(p.containers) == 0 {
				continue // only remembered, by Forbid
			}
			all = append(all, p.view())
			p.told(now)
		}
		return nil
	})
	return all, err
}

func (w *World) uidsLocked() []string {
	uids := make([]string, 0, len(w.pods))
	for uid := range w.pods {
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	return uids
}

// ContainerConfig is what a container was created with, as it arrived: for
// tests of what a client sends. It is no call of the runtime.
func (w *World) ContainerConfig(id string) (runtime.ContainerConfig, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.containers[id]
	if c == nil {
		return runtime.ContainerConfig{}, false
	}
	return c.cfg, true
}

// SandboxConfig is what a sandbox was made with, as it arrived.
func (w *World) SandboxConfig(id string) (runtime.SandboxConfig, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sandboxes[id]
	if s == nil {
		return runtime.SandboxConfig{}, false
	}
	return s.cfg, true
}

// told remembers that the agent was shown which sandboxes are dead.
func (p *pod) told(now time.Time) {
	for _, s := range p.sandboxes {
		if !s.ready && s.seenDead.IsZero() {
			s.seenDead = now
		}
	}
}

// view is the whole pod as package runtime orders it.
func (p *pod) view() runtime.Pod {
	v := p.identity()
	for _, s := range p.sandboxes {
		v.Sandboxes = append(v.Sandboxes, s.view())
	}
	slices.SortFunc(v.Sandboxes, func(a, b runtime.Sandbox) int {
		return cmp.Or(cmp.Compare(b.Attempt, a.Attempt), b.CreatedAt.Compare(a.CreatedAt))
	})
	for _, c := range p.containers {
		v.Containers = append(v.Containers, c.view())
	}
	sortContainers(v.Containers)
	return v
}

// viewOf is the pod with one of its sandboxes only.
func (p *pod) viewOf(s *sandbox) runtime.Pod {
	v := p.identity()
	if slices.Contains(p.sandboxes, s) {
		v.Sandboxes = []runtime.Sandbox{s.view()}
	}
	for _, c := range p.containers {
		if c.sandbox == s {
			v.Containers = append(v.Containers, c.view())
		}
	}
	sortContainers(v.Containers)
	return v
}

func (p *pod) identity() runtime.Pod {
	return runtime.Pod{UID: p.uid, Namespace: p.namespace, Name: p.name}
}

func sortContainers(all []runtime.Container) {
	slices.SortFunc(all, func(a, b runtime.Container) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(b.Attempt, a.Attempt), b.CreatedAt.Compare(a.CreatedAt))
	})
}

// view shares the maps of the configuration, which nobody changes.
func (s *sandbox) view() runtime.Sandbox {
	return runtime.Sandbox{
		ID:             s.id,
		Attempt:        s.cfg.Attempt,
		Ready:          s.ready,
		CreatedAt:      s.created,
		IPs:            s.ips,
		HostNetwork:    s.hostNetwork(),
		RuntimeHandler: s.cfg.RuntimeHandler,
		Labels:         s.cfg.Labels,
		Annotations:    s.cfg.Annotations,
	}
}

func (c *container) view() runtime.Container {
	v := runtime.Container{
		ID:          c.id,
		SandboxID:   c.sandbox.id,
		Name:        c.cfg.Name,
		Attempt:     c.cfg.Attempt,
		State:       c.state,
		CreatedAt:   c.created,
		StartedAt:   c.started,
		FinishedAt:  c.finished,
		ExitCode:    c.end.code,
		Reason:      c.end.reason,
		Image:       cmp.Or(c.cfg.Image.Requested, c.cfg.Image.Ref),
		ImageID:     c.imageID,
		LogPath:     c.logPath(),
		Labels:      c.cfg.Labels,
		Annotations: c.cfg.Annotations,
	}
	if c.state == runtime.ContainerExited {
		v.Message = cmp.Or(c.end.message, c.does.Message)
	}
	return v
}

func (c *container) logPath() string {
	if c.cfg.LogPath == "" || c.sandbox.cfg.LogDirectory == "" {
		return ""
	}
	return strings.TrimSuffix(c.sandbox.cfg.LogDirectory, "/") + "/" + c.cfg.LogPath
}
