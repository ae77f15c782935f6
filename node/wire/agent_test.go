package wire_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/source"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/images"
	"nodekit.dev/runtime/runtimetest"
	"nodekit.dev/volume"
)

// phases is a status sink that tests wait on.
type phases chan node.StatusUpdate

func (p phases) PodStatus(u node.StatusUpdate) { p <- u }

// await waits for a pod to be in that phase.
func (p phases) await(t *testing.T, uid string, phase corev1.PodPhase) node.StatusUpdate {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		select {
		case u := <-p:
			if u.UID == uid && u.Status.Phase == phase {
				return u
			}
		case <-limit:
			t.Fatalf("pod %s is not %s after 20 s", uid, phase)
		}
	}
}

func sourceOf(t *testing.T, pods ...*corev1.Pod) *source.Channel {
	t.Helper()
	return sourceFor(t, "node-1", pods...)
}

// sourceFor has pods for the node of that name, which refuses others.
func sourceFor(t *testing.T, nodeName string, pods ...*corev1.Pod) *source.Channel {
	t.Helper()
	s, err := source.NewChannel("go", source.Config{NodeName: nodeName})
	must(t, err)
	must(t, s.Set(pods))
	return s
}

// running is an agent that runs until stop.
type running struct {
	*wire.Agent
	phases phases
	stop   func()
}

func run(t *testing.T, cfg wire.Config, opts ...wire.Option) running {
	t.Helper()
	r := running{phases: make(phases, 100)}
	sink := wire.WithParts(func(p *wire.Parts) { p.StatusSinks = append(p.StatusSinks, r.phases) })
	agent, err := wire.New(cfg, append(opts, sink)...)
	must(t, err)
	r.Agent = agent
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- agent.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

// TestAgentStartsAndStops: the whole hand-wired agent, over a socket to a
// strict runtime: start, stop and start again leave the pod as it is.
func TestAgentStartsAndStops(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	server := w.Serve(t, t.TempDir())
	cfg := config(t, server.Endpoint())
	var id string
	for range 2 {
		a := run(t, cfg, wire.WithSource(sourceOf(t, podNamed("1", "web"))))
		<-a.Ready()
		status := a.phases.await(t, "1", corev1.PodRunning)
		if view, ok := a.Node().Pod("1"); !ok || view.Source != "go" {
			t.Errorf("view %+v", view)
		}
		if got := status.Status.ContainerStatuses[0].ContainerID; id == "" {
			id = got
		} else if got != id {
			t.Errorf("container %s instead of %s", got, id)
		}
		a.stop()
		pod, err := w.LookPod(t.Context(), "1")
		must(t, err)
		if len(pod.Containers) != 1 || pod.Containers[0].State != runtime.ContainerRunning {
			t.Fatalf("after the stop: %+v", pod)
		}
	}
	w.Down() // drops the server's goroutines too
}

// TestTwoAgents live in one process, each with its own runtime, connection,
// directory, log and settings.
func TestTwoAgents(t *testing.T) {
	type side struct {
		world *runtimetest.World
		log   bytes.Buffer
		agent running
		sites string
	}
	sides := [2]side{{sites: "north"}, {sites: "south"}}
	for i := range sides {
		s := &sides[i]
		s.world = runtimetest.NewWorld(t, runtimetest.Config{})
		cfg := config(t, s.world.Serve(t, t.TempDir()).Endpoint())
		cfg.NodeName = s.sites
		cfg.Log = slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		cfg.Spec.SeccompDefault = i == 0 // what SeccompDefault, a feature gate once, turns into
		// One UID on both: nothing is shared, not even by accident.
		s.agent = run(t, cfg, wire.WithSource(sourceFor(t, s.sites, podNamed("1", "pod-of-"+s.sites))))
	}
	for i := range sides {
		sides[i].agent.phases.await(t, "1", corev1.PodRunning)
	}
	sides[0].agent.stop()
	if _, ok := sides[1].agent.Node().Pod("1"); !ok {
		t.Error("the second agent ended with the first")
	}
	sides[1].agent.stop()
	for i := range sides {
		own, other := sides[i].sites, sides[1-i].sites
		if log := sides[i].log.String(); !strings.Contains(log, "pod-of-"+own) || strings.Contains(log, "pod-of-"+other) {
			t.Errorf("the log of %s:\n%s", own, log)
		}
		if n := sides[i].world.Calls(runtimetest.MethodRunSandbox); n != 1 {
			t.Errorf("%s made %d sandboxes", own, n)
		}
		pod, err := sides[i].world.LookPod(t.Context(), "1")
		must(t, err)
		got, _ := sides[i].world.ContainerConfig(pod.Containers[0].ID)
		confined := got.Security.Seccomp != nil && got.Security.Seccomp.Type == runtime.ProfileRuntimeDefault
		if confined != (i == 0) {
			t.Errorf("%s: seccomp profile %+v", own, got.Security.Seccomp)
		}
	}
}

// TestSecondAgentOnOneRoot is refused by name.
func TestSecondAgentOnOneRoot(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	cfg := config(t, w.Serve(t, t.TempDir()).Endpoint())
	first := run(t, cfg, wire.WithSource(sourceOf(t)))
	<-first.Ready()
	cfg.NodeName = "node-2"
	second, err := wire.New(cfg)
	must(t, err)
	err = second.Run(t.Context())
	var locked *wire.LockedError
	if !errors.As(err, &locked) || !strings.HasPrefix(locked.Owner, "node-1 (pid ") {
		t.Errorf("error %v", err)
	}
	if err := second.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "wire.New") {
		t.Errorf("a second Run: %v", err)
	}
}

// crate is a volume plugin that takes emptyDirs from the stock one.
type crate struct{}

func (crate) Name() string                  { return "vendor.example/crate" }
func (crate) Supports(s volume.Source) bool { return s.Volume.EmptyDir != nil }

func (crate) Mount(_ context.Context, req volume.MountRequest) (volume.MountResult, error) {
	return volume.MountResult{HostPath: req.Dir}, os.MkdirAll(req.Dir, 0o750)
}

func (crate) Mounted(_ context.Context, req volume.MountedRequest) (volume.MountedResult, error) {
	_, err := os.Stat(req.Dir)
	return volume.MountedResult{Mounted: err == nil, HostPath: req.Dir}, nil
}

func (crate) Unmount(_ context.Context, req volume.UnmountRequest) error {
	return os.RemoveAll(req.Dir)
}

// auth knows one user.
type auth struct{}

func (auth) Credentials(context.Context, images.Request) ([]runtime.ImageAuth, error) {
	return []runtime.ImageAuth{{Username: "site", Password: "secret"}}, nil
}

// never rejects every pod.
type never struct{}

func (never) Admit(context.Context, node.AdmitRequest) (lifecycle.Admission, error) {
	return lifecycle.Admission{Verdict: lifecycle.VerdictReject, Reason: "Closed", Message: "not today"}, nil
}

// TestOptions: parts that are given are used, and groups are added to.
func TestOptions(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	w.Registry("registry.test/app:1", runtimetest.RegistryImage{Auth: &runtime.ImageAuth{Username: "site", Password: "secret"}})
	cfg := config(t, w.Serve(t, t.TempDir()).Endpoint())
	cfg.Host.LogLinksDir = filepath.Join(t.TempDir(), "links")
	pod := podNamed("1", "web", func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	})
	a := run(t, cfg, wire.WithSource(sourceOf(t, pod)), wire.WithParts(func(p *wire.Parts) {
		p.PullAuth = auth{}
		p.VolumePlugins = append(p.VolumePlugins, node.Ordered[volume.Plugin]{Name: "crate", Value: crate{}})
	}))
	a.phases.await(t, "1", corev1.PodRunning)
	seen, err := w.LookPod(t.Context(), "1")
	must(t, err)
	got, _ := w.ContainerConfig(seen.Containers[0].ID)
	if len(got.Mounts) == 0 || !strings.Contains(got.Mounts[0].HostPath, "vendor.example~crate/data") {
		t.Errorf("mounts %+v", got.Mounts)
	}
	a.stop()

	b := run(t, config(t, cfg.CRI.Endpoint), wire.WithSource(sourceOf(t, podNamed("2", "late"))),
		wire.WithParts(func(p *wire.Parts) {
			p.Admitters = append(p.Admitters, node.Ordered[node.Admitter]{Name: "never", Value: never{}})
		}))
	if failed := b.phases.await(t, "2", corev1.PodFailed); failed.Status.Reason != "Closed" {
		t.Errorf("status %+v", failed.Status)
	}
}

// TestErrorsOfNew: what is wrong is named, and nothing is left open.
func TestErrorsOfNew(t *testing.T) {
	for want, edit := range map[string]func(*wire.Config, *wire.Parts){
		"NodeName":         func(c *wire.Config, _ *wire.Parts) { c.NodeName = "" },
		"cri client":       func(c *wire.Config, _ *wire.Parts) { c.CRI.Endpoint = "tcp://x" },
		"images: back-off": func(c *wire.Config, _ *wire.Parts) { c.Images.BackoffBase = -1 },
		"volume: Width -1": func(c *wire.Config, _ *wire.Parts) { c.Volume.Width = -1 },
		"podspec":          func(c *wire.Config, _ *wire.Parts) { c.Spec.AllowedUnsafeSysctls = []string{"*"} },
		"StartWidth":       func(c *wire.Config, _ *wire.Parts) { c.Node.StartWidth = 0 },
		"volume plugin":    func(_ *wire.Config, p *wire.Parts) { p.VolumePlugins = []node.Ordered[volume.Plugin]{{}} },
		`source "x" calls`: func(_ *wire.Config, p *wire.Parts) {
			p.Sources = []node.Ordered[node.Source]{{Name: "x", Value: sourceOf(t)}}
		},
		"hook group: circle": func(_ *wire.Config, p *wire.Parts) {
			p.Hooks = []node.Ordered[node.Hook]{{Name: "a", After: []string{"a"}}}
		},
	} {
		cfg := config(t, "unix:///x.sock")
		var parts wire.Parts
		edit(&cfg, &parts)
		_, err := wire.New(cfg, func(p *wire.Parts) { *p = parts })
		if err == nil || !strings.HasPrefix(err.Error(), "agent: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
}

// TestWithoutCRI: with every part that talks to the CRI given there is no
// client, so that the endpoint is not even looked at.
func TestWithoutCRI(t *testing.T) {
	b := actortest.New(t, runtimetest.Config{})
	a := run(t, config(t, "not an endpoint"), wire.WithSource(sourceOf(t, podNamed("1", "web"))),
		wire.WithParts(func(p *wire.Parts) {
			p.Engine, p.Watcher, p.Puller, p.Handlers = b, b, b, noHandlers{}
		}))
	a.phases.await(t, "1", corev1.PodRunning)
}

type noHandlers struct{}

func (noHandlers) RunHandler(context.Context, node.HandlerRequest) error { return nil }
