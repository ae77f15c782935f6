package runtimetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"nodekit.dev/runtime"
)

// sandbox is one pod sandbox.
type sandbox struct {
	id      string
	cfg     runtime.SandboxConfig
	pod     *pod
	ready   bool
	created time.Time
	ips     []string
	// stopped is set by StopSandbox, seenDead by the first look that told the
	// agent of a death by other means.
	stopped  bool
	seenDead time.Time
}

func (s *sandbox) hostNetwork() bool {
	return s.cfg.Security.Namespaces.Network == runtime.NamespaceNode
}

// RunSandbox makes a sandbox and returns its ID.
func (w *World) RunSandbox(ctx context.Context, cfg runtime.SandboxConfig) (string, error) {
	w.report.Helper()
	w.checkForbidden(cfg.UID, cfg.Namespace, cfg.Name, "", "a sandbox is made")
	var id string
	err := w.do(ctx, call{method: MethodRunSandbox, uid: cfg.UID}, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		var err error
		id, err = w.runSandboxLocked(cfg)
		return err
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

func (w *World) runSandboxLocked(cfg runtime.SandboxConfig) (string, error) {
	w.report.Helper()
	if cfg.UID == "" || cfg.Name == "" || cfg.Namespace == "" {
		return "", status.Error(codes.InvalidArgument, "sandbox config must include name, namespace and UID")
	}
	if h := cfg.RuntimeHandler; h != "" && !slices.Contains(w.cfg.Handlers, h) {
		return "", status.Errorf(codes.Unknown, "failed to get sandbox runtime: no runtime for %q is configured", h)
	}
	s := &sandbox{cfg: cfg, ready: true, created: time.Now()}
	if w.health.networkDown != "" && !s.hostNetwork() {
		return "", status.Errorf(codes.Unknown, "failed to setup network for sandbox: %s", w.health.networkDown)
	}
	s.pod = w.podLocked(cfg.UID, cfg.Namespace, cfg.Name)
	for _, other := range s.pod.sandboxes {
		if other.cfg.Attempt == cfg.Attempt {
			w.violateLocked(RuleAttempt, s.pod, "", "sandbox attempt %d exists already as %s", cfg.Attempt, other.id)
			return "", status.Errorf(codes.Unknown, "failed to reserve sandbox name: it is reserved for %q", other.id)
		}
	}
	w.judgeNewSandboxLocked(s)
	s.id = w.newIDLocked("sandbox")
	if !s.hostNetwork() {
		s.ips = w.addresses.take(w.cfg.DualStack)
	}
	w.sandboxes[s.id] = s
	s.pod.sandboxes = append(s.pod.sandboxes, s)
	w.emitLocked(EventCreated, s, s.id)
	w.emitLocked(EventStarted, s, s.id)
	return s.id, nil
}

func (w *World) judgeNewSandboxLocked(s *sandbox) {
	w.report.Helper()
	for _, other := range s.pod.sandboxes {
		if other.ready {
			w.violateLocked(RuleTwoSandboxes, s.pod, "", "a sandbox is made while %s is ready", other.id)
		}
		if other.cfg.Attempt > s.cfg.Attempt {
			w.violateLocked(RuleAttempt, s.pod, "", "sandbox attempt %d comes after attempt %d (%s)", s.cfg.Attempt, other.cfg.Attempt, other.id)
		}
	}
	if wrong := stockSandbox(s.cfg); len(wrong) > 0 {
		w.violateLocked(RuleStock, s.pod, "", "sandbox: %s", strings.Join(wrong, "; "))
	}
	isSlice := strings.HasSuffix(s.cfg.CgroupParent, ".slice")
	if s.cfg.CgroupParent != "" && isSlice != (w.cfg.CgroupDriver == "systemd") {
		w.violateLocked(RuleCgroupParent, s.pod, "", "cgroup parent %q does not suit the cgroup driver", s.cfg.CgroupParent)
	}
}

// StopSandbox kills what runs in the sandbox and takes its network away. A
// sandbox that is gone is fine.
func (w *World) StopSandbox(ctx context.Context, id string) error {
	w.report.Helper()
	return w.do(ctx, w.sandboxCall(MethodStopSandbox, id), func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		s := w.sandboxes[id]
		if s == nil {
			return nil
		}
		if s.ready {
			w.judgeRunningLocked(s, "stopped")
		}
		w.stopSandboxLocked(s)
		return nil
	})
}

// RemoveSandbox removes the sandbox with its containers. A sandbox that is gone is fine.
func (w *World) RemoveSandbox(ctx context.Context, id string) error {
	w.report.Helper()
	return w.do(ctx, w.sandboxCall(MethodRemoveSandbox, id), func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		s := w.sandboxes[id]
		if s == nil {
			return nil
		}
		if s.ready {
			w.violateLocked(RuleRemoveReadySandbox, s.pod, "", "sandbox %s is removed while it is ready", id)
		}
		w.judgeRunningLocked(s, "removed")
		w.removeSandboxLocked(s)
		return nil
	})
}

func (w *World) judgeRunningLocked(s *sandbox, what string) {
	w.report.Helper()
	for _, c := range s.pod.containers {
		if c.sandbox == s && c.state == runtime.ContainerRunning {
			w.violateLocked(RuleSandboxOverRunning, s.pod, c.cfg.Name, "sandbox %s is %s while container %s runs in it", s.id, what, c.id)
		}
	}
}

func (w *World) stopSandboxLocked(s *sandbox) {
	s.stopped = true
	w.killContainersLocked(s)
	w.endSandboxLocked(s)
	w.addresses.giveBack(s.ips)
	s.ips = nil
}

// killContainersLocked kills all that runs in the sandbox.
func (w *World) killContainersLocked(s *sandbox) {
	for _, c := range slices.Clone(s.pod.containers) {
		if c.sandbox == s && c.state == runtime.ContainerRunning {
			w.exitLocked(c, killed)
		}
	}
}

func (w *World) endSandboxLocked(s *sandbox) {
	if s.ready {
		s.ready = false
		w.emitLocked(EventStopped, s, s.id)
	}
}

func (w *World) removeSandboxLocked(s *sandbox) {
	w.stopSandboxLocked(s)
	for _, c := range slices.Clone(s.pod.containers) {
		if c.sandbox == s {
			w.removeContainerLocked(c)
		}
	}
	delete(w.sandboxes, s.id)
	s.pod.sandboxes = slices.DeleteFunc(s.pod.sandboxes, func(o *sandbox) bool { return o == s })
	w.emitLocked(EventDeleted, s, s.id)
	w.forgetLocked(s.pod)
}

// KillSandbox ends the newest sandbox of the pod as a crash of its pause
// process does: containers live on unless they share its PID namespace. It
// says whether a ready sandbox was there.
func (w *World) KillSandbox(uid string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.pods[uid]
	if p == nil || len(p.sandboxes) == 0 || !p.sandboxes[len(p.sandboxes)-1].ready {
		return false
	}
	s := p.sandboxes[len(p.sandboxes)-1]
	if s.cfg.Security.Namespaces.PID == runtime.NamespacePod {
		w.killContainersLocked(s)
	}
	w.endSandboxLocked(s)
	return true
}

func (w *World) sandboxCall(m Method, id string) call {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.sandboxes[id]; s != nil {
		return call{method: m, uid: s.pod.uid}
	}
	if !w.existedLocked(id) {
		w.violateLocked(RuleUnknownID, nil, "", "%s names sandbox %q, which never existed", m, id)
	}
	return call{method: m}
}

// checkForbidden judges a call by the moment it was made, before faults delay it.
func (w *World) checkForbidden(uid, namespace, name, container, what string) {
	w.report.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.pods[uid]
	if p == nil || !p.forbidden {
		return
	}
	if p.name == "" {
		p.namespace, p.name = namespace, name
	}
	w.violateLocked(RuleStartAfterStop, p, container, "%s after the pod was told to stop", what)
}

func (w *World) newIDLocked(kind string) string {
	w.made++
	return fmt.Sprintf("%s-%d", kind, w.made)
}

// addressPool hands out pod addresses of 10.0.0.0/8 and fd00::/64.
type addressPool struct {
	next uint32
	free []uint32
}

func (a *addressPool) take(dualStack bool) []string {
	var n uint32
	if last := len(a.free) - 1; last >= 0 {
		n, a.free = a.free[last], a.free[:last]
	} else {
		a.next++
		n = a.next
	}
	ips := []string{fmt.Sprintf("10.%d.%d.%d", byte(n>>16), byte(n>>8), byte(n))}
	if dualStack {
		ips = append(ips, fmt.Sprintf("fd00::%x:%x", n>>16, n&0xffff))
	}
	return ips
}

func (a *addressPool) giveBack(ips []string) {
	if len(ips) == 0 {
		return
	}
	var x, y, z uint32
	if _, err := fmt.Sscanf(ips[0], "10.%d.%d.%d", &x, &y, &z); err == nil {
		a.free = append(a.free, x<<16|y<<8|z)
	}
}
