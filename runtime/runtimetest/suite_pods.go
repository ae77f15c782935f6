package runtimetest

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"nodekit.dev/runtime"
)

// clockSlack is how far the clocks of test and runtime may be apart.
const clockSlack = 2 * time.Second

func (b *bench) checkRecent(what string, at, since time.Time) {
	b.Helper()
	if at.Before(since.Add(-clockSlack)) || at.After(time.Now().Add(clockSlack)) {
		b.Errorf("%s at %s, want it between %s and now", what, at, since)
	}
}

func (b *bench) checkMap(what string, got, want map[string]string) {
	b.Helper()
	for k, v := range want {
		if got[k] != v {
			b.Errorf("%s %s is %q, want %q", what, k, got[k], v)
		}
	}
}

func sandboxLife(t *testing.T, b *bench) {
	p := &testPod{bench: b, cfg: b.config("sandbox-life")}
	p.cfg.Attempt = 2
	p.Cleanup(p.clear)
	before := time.Now()
	p.runSandbox()

	view := p.look()
	if view.UID != p.cfg.UID || view.Name != p.cfg.Name || view.Namespace != p.cfg.Namespace || len(view.Sandboxes) != 1 {
		t.Fatalf("look after the start: %+v", view)
	}
	s := view.Sandboxes[0]
	if s.ID != p.sandboxID || s.Attempt != 2 || !s.Ready || s.HostNetwork {
		t.Errorf("sandbox after the start: %+v", s)
	}
	p.checkRecent("sandbox created", s.CreatedAt, before)
	p.checkMap("label", s.Labels, p.cfg.Labels)
	p.checkMap("annotation", s.Annotations, p.cfg.Annotations)
	if len(s.IPs) == 0 {
		t.Error("the sandbox has no IP")
	}
	for _, ip := range s.IPs {
		if _, err := netip.ParseAddr(ip); err != nil {
			t.Errorf("IP of the sandbox: %v", err)
		}
	}

	for range 2 { // the second of each is for what is done already
		p.must(p.Sandboxes.StopSandbox(p.ctx(), p.sandboxID), "stop the sandbox")
	}
	if view := p.look(); len(view.Sandboxes) != 1 || view.Sandboxes[0].Ready {
		t.Errorf("look after the stop: %+v", view)
	}
	for range 2 {
		p.must(p.Sandboxes.RemoveSandbox(p.ctx(), p.sandboxID), "remove the sandbox")
	}
	p.must(p.Sandboxes.StopSandbox(p.ctx(), p.sandboxID), "stop the removed sandbox")
	if view := p.look(); !view.Empty() {
		t.Errorf("look after the removal: %+v", view)
	}
}

func sandboxTakesContainers(t *testing.T, b *bench) {
	p := b.pod("takes-containers")
	ended := p.start("ended", 0, "exit 0")
	created := p.create("created", 0, polite)
	p.until(ended, runtime.ContainerExited)
	p.must(p.Sandboxes.StopSandbox(p.ctx(), p.sandboxID), "stop the sandbox")
	if view := p.look(); len(view.Containers) != 2 {
		t.Errorf("the stop of the sandbox should leave its dead containers: %+v", view.Containers)
	}
	p.must(p.Sandboxes.RemoveSandbox(p.ctx(), p.sandboxID), "remove the sandbox")
	if view := p.look(); !view.Empty() {
		t.Errorf("look after the removal: %+v", view)
	}
	for _, id := range []string{ended, created} {
		p.must(p.Containers.RemoveContainer(p.ctx(), id), "remove the container that went with its sandbox")
	}
}

func sandboxDies(t *testing.T, b *bench) {
	if b.KillSandbox == nil {
		t.Skip("the subject has no KillSandbox")
	}
	p := b.pod("sandbox-dies")
	first := p.sandboxID
	b.KillSandbox(t, p.cfg.UID, first)
	p.eventually("the dead sandbox is not ready", func() bool {
		s, ok := p.look().NewestSandbox()
		return ok && !s.Ready
	})
	cfg := p.container("late", 0, "sh", "-c", polite)
	if id, err := p.Containers.CreateContainer(p.ctx(), first, cfg, p.cfg); err == nil {
		if err := p.Containers.StartContainer(p.ctx(), id); err == nil {
			t.Error("a container started in a dead sandbox")
		}
	}
	p.must(p.Sandboxes.StopSandbox(p.ctx(), first), "stop the dead sandbox")
	p.cfg.Attempt = 1
	p.runSandbox()
	view := p.look()
	if len(view.Sandboxes) != 2 || view.Sandboxes[0].ID != p.sandboxID || !view.Sandboxes[0].Ready || view.Sandboxes[1].Ready {
		t.Errorf("want the new sandbox first and ready, the old one not ready: %+v", view.Sandboxes)
	}
	p.must(p.Sandboxes.RemoveSandbox(p.ctx(), first), "remove the dead sandbox")
}

func cancelledRun(t *testing.T, b *bench) {
	p := &testPod{bench: b, cfg: b.config("cancelled-run")}
	p.Cleanup(p.clear)
	ctx, cancel := context.WithCancel(p.ctx())
	cancel()
	if id, err := p.Sandboxes.RunSandbox(ctx, p.cfg); err == nil {
		t.Errorf("a call with a cancelled context made sandbox %s", id)
	}
	if view := p.look(); !view.Empty() {
		t.Errorf("a call with a cancelled context left %+v", view)
	}
}

func unknownPod(t *testing.T, b *bench) {
	uid := b.config("unknown").UID
	view, err := b.Pods.LookPod(b.ctx(), uid)
	if err != nil || !view.Empty() || view.UID != uid {
		t.Errorf("look at an unknown pod: %+v, error %v", view, err)
	}
}

func listPods(t *testing.T, b *bench) {
	one, two := b.pod("list-one"), b.pod("list-two")
	running := one.start("app", 0, polite)
	all, err := b.Pods.ListPods(b.ctx())
	b.must(err, "list the pods")
	found := map[string]runtime.Pod{}
	for _, p := range all {
		if _, twice := found[p.UID]; twice {
			t.Errorf("pod %s is listed twice", p.UID)
		}
		found[p.UID] = p
	}
	for _, want := range []*testPod{one, two} {
		got := found[want.cfg.UID]
		if got.Name != want.cfg.Name || got.Namespace != want.cfg.Namespace || len(got.Sandboxes) != 1 || got.Sandboxes[0].ID != want.sandboxID {
			t.Errorf("pod %s is listed as %+v", want.cfg.Name, got)
		}
	}
	if c, ok := found[one.cfg.UID].NewestContainer("app"); !ok || c.ID != running || c.State != runtime.ContainerRunning || c.SandboxID != one.sandboxID {
		t.Errorf("the running container is listed as %+v", c)
	}
	if left := found[two.cfg.UID].Containers; len(left) != 0 {
		t.Errorf("the pod without containers is listed with %+v", left)
	}
}

func parallelPods(t *testing.T, b *bench) {
	const pods = 6
	ref := b.pull()
	ctx := b.ctx()
	var group errgroup.Group
	for i := range pods {
		cfg := b.config(fmt.Sprintf("parallel-%d", i))
		p := &testPod{bench: b, cfg: cfg}
		b.Cleanup(p.clear)
		group.Go(func() error { return oneOfMany(ctx, b.Subject, cfg, ref) })
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// oneOfMany takes a pod through its life, in a goroutine of its own.
func oneOfMany(ctx context.Context, s Subject, cfg runtime.SandboxConfig, ref string) error {
	sandboxID, err := s.Sandboxes.RunSandbox(ctx, cfg)
	if err != nil {
		return fmt.Errorf("run the sandbox of %s: %w", cfg.Name, err)
	}
	container := ContainerFor(cfg, "app", ref, 0, "sh", "-c", polite)
	if s.LogDirectory == "" {
		container.LogPath = ""
	} else {
		container.LogPath = cfg.UID + "_" + container.LogPath
	}
	id, err := s.Containers.CreateContainer(ctx, sandboxID, container, cfg)
	if err != nil {
		return fmt.Errorf("create the container of %s: %w", cfg.Name, err)
	}
	if err := s.Containers.StartContainer(ctx, id); err != nil {
		return fmt.Errorf("start the container of %s: %w", cfg.Name, err)
	}
	view, err := s.Pods.LookPod(ctx, cfg.UID)
	if err != nil {
		return fmt.Errorf("look at %s: %w", cfg.Name, err)
	}
	if c, ok := view.NewestContainer("app"); !ok || c.ID != id || c.State != runtime.ContainerRunning || len(view.Containers) != 1 || len(view.Sandboxes) != 1 {
		return fmt.Errorf("look at %s: %+v", cfg.Name, view)
	}
	if err := s.Containers.StopContainer(ctx, id, 0); err != nil {
		return fmt.Errorf("stop the container of %s: %w", cfg.Name, err)
	}
	return nil
}

func hintsArrive(t *testing.T, b *bench) {
	if b.Hints == nil {
		t.Skip("the subject has no hints")
	}
	p := b.pod("hints")
	p.awaitHint("the sandbox was made")
	id := p.start("app", 0, "sleep 1; exit 0")
	p.awaitHint("the container was started")
	p.until(id, runtime.ContainerExited)
	p.awaitHint("the container ended")
	p.must(p.Containers.RemoveContainer(p.ctx(), id), "remove the container")
	p.awaitHint("the container was removed")
}

// awaitHint waits for news of the pod or of all pods, and takes all that has come.
func (p *testPod) awaitHint(after string) {
	p.Helper()
	deadline := time.NewTimer(caseDeadline)
	defer deadline.Stop()
	for {
		select {
		case h := <-p.Hints:
			if h.UID == "" || h.UID == p.cfg.UID {
				p.drainHints()
				return
			}
		case <-deadline.C:
			p.Fatalf("no hint after %s", after)
		}
	}
}

func (p *testPod) drainHints() {
	for {
		select {
		case <-p.Hints:
		default:
			return
		}
	}
}
