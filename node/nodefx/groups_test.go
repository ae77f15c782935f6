package nodefx_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/runtimetest"
	"nodekit.dev/volume"
)

// site is a vendor's configuration; diary is a vendor's service that others of
// the vendor's parts ask for.
type site struct{ Name string }

type diary struct {
	mu    sync.Mutex
	lines []string
}

func newDiary(s site) *diary { return &diary{lines: []string{"site " + s.Name}} }

func (d *diary) note(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (d *diary) has(line string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.lines, line)
}

// member is at home in every group.
type member struct {
	node.NoHook
	name string
	*diary
	asked map[string]bool
}

func (m member) Mutate(pod *corev1.Pod) (*corev1.Pod, error) {
	pod = pod.DeepCopy()
	pod.Labels = map[string]string{"site": m.name}
	return pod, nil
}

func (m member) Admit(_ context.Context, req node.AdmitRequest) (lifecycle.Admission, error) {
	m.note("admit at " + time.Since(epoch()).String())
	if !m.asked[string(req.Pod.UID)] {
		m.asked[string(req.Pod.UID)] = true
		return lifecycle.Admission{Verdict: lifecycle.VerdictLater, Message: "the feed is dark", RetryAt: time.Now().Add(time.Minute)}, nil
	}
	return lifecycle.Admission{Verdict: lifecycle.VerdictAdmit}, nil
}

func (m member) Started(_ context.Context, pod *corev1.Pod, container, _ string) error {
	m.note("started " + container + " of site " + pod.Labels["site"])
	return nil
}

func (m member) MutateSandbox(_ *corev1.Pod, cfg *runtime.SandboxConfig) error {
	cfg.Annotations["vendor.example/site"] = m.name
	return nil
}

func (m member) MutateContainer(_ *corev1.Pod, cfg *runtime.ContainerConfig) error {
	cfg.Env = append(cfg.Env, runtime.EnvVar{Name: "SITE", Value: m.name})
	return nil
}

func (m member) MutateStatus(update node.StatusUpdate) corev1.PodStatus {
	status := *update.Status.DeepCopy()
	status.Message = "seen at " + m.name
	return status
}

func (m member) PodStatus(u node.StatusUpdate) { m.note("status " + u.Status.Message) }
func (m member) PodEvent(e node.PodEvent)      { m.note("event " + e.Reason) }

func (m member) ServeHTTP(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(m.name)) }

// epoch is when every bubble begins.
func epoch() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// newMember is a constructor as a vendor writes it: configuration, logger,
// lifecycle and a service of the vendor's own come from the graph.
func newMember(lc fx.Lifecycle, s site, log *slog.Logger, d *diary) *member {
	lc.Append(fx.StartHook(func() { d.note("lifecycle of " + s.Name); log.Info("member starts", "site", s.Name) }))
	return &member{name: s.Name, diary: d, asked: map[string]bool{}}
}

// TestMembersAct adds one member to every group that needs no machine, each
// made by a constructor with parameters, and sees each of them act.
func TestMembersAct(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := actortest.New(t, runtimetest.Config{})
		var log lines
		var d *diary
		a := newAgent(t, onWorld(t, b,
			nodefx.Configure(func(c *wire.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) }),
			nodefx.Supply(site{"north"}),
			nodefx.Provide(newDiary),
			nodefx.AddSource("go", func(newest *diary) pods {
				d = newest
				return pods{"go", []*corev1.Pod{actortest.Pod("1", "web")}}
			}),
			nodefx.AddMutator("m", newMember),
			nodefx.AddAdmitter("m", newMember),
			nodefx.AddHook("m", newMember),
			nodefx.AddSandboxMutator("m", newMember),
			nodefx.AddContainerMutator("m", newMember),
			nodefx.AddStatusMutator("m", newMember),
			nodefx.AddStatusSink(newMember),
			nodefx.AddEventSink(newMember),
			nodefx.AddHTTPRoute("GET /site", newMember),
		)...)
		must(t, a.Start(t.Context()))
		after(time.Hour)

		for _, want := range []string{
			"site north", "lifecycle of north", "admit at 0s", "admit at 1m0s",
			"started app of site north", "status seen at north", "event Started",
		} {
			if !d.has(want) {
				t.Errorf("the diary has no %q: %q", want, d.lines)
			}
		}
		if !strings.Contains(log.String(), "member starts") {
			t.Errorf("the injected logger is not the configured one: %s", log.String())
		}
		pod := b.Seen(t, "1")
		if len(pod.Sandboxes) != 1 || len(pod.Containers) != 1 {
			t.Fatalf("the pod does not run: %+v", pod)
		}
		if cfg, _ := b.SandboxConfig(pod.Sandboxes[0].ID); cfg.Annotations["vendor.example/site"] != "north" {
			t.Errorf("sandbox annotations %v", cfg.Annotations)
		}
		if cfg, _ := b.ContainerConfig(pod.Containers[0].ID); !slices.Contains(cfg.Env, runtime.EnvVar{Name: "SITE", Value: "north"}) {
			t.Errorf("container environment %v", cfg.Env)
		}
		if view, _ := a.Node().Pod("1"); view.Status.Message != "seen at north" {
			t.Errorf("the view tells %q", view.Status.Message)
		}
		must(t, a.Stop(t.Context()))
	})
}

func TestRoutes(t *testing.T) {
	b := actortest.New(t, runtimetest.Config{})
	a := newAgent(t, onWorld(t, b,
		nodefx.AddHTTPRoute("GET /b", member{name: "second"}),
		nodefx.AddHTTPRoute("GET /a", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("first")) })),
	)...)
	mux := http.NewServeMux()
	for _, r := range a.Routes() {
		mux.Handle(r.Pattern, r.Handler)
	}
	for path, want := range map[string]string{"/a": "first", "/b": "second"} {
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if answer.Body.String() != want {
			t.Errorf("%s answers %q, want %q", path, answer.Body, want)
		}
	}
}

// TestGroupOrder: After decides, then names, whatever the order of options.
func TestGroupOrder(t *testing.T) {
	b := actortest.New(t, runtimetest.Config{})
	a := newAgent(t, onWorld(t, b,
		nodefx.AddHook("a", node.NoHook{}, "z"),
		nodefx.AddHook("z", node.NoHook{}),
		nodefx.AddHook("b", node.NoHook{}, "log-links"),
		nodefx.Configure(func(c *wire.Config) { c.Host.LogLinksDir = c.PodLogsDir }),
		nodefx.AddStatusMutator("y", member{}), nodefx.AddStatusMutator("x", member{}, "y"),
	)...)
	got := a.Groups()
	want := nodefx.GroupNames{Admitters: []string{"os", "node-name", "node-ports"}, Hooks: []string{"log-links", "b", "z", "a"}, StatusMutators: []string{"y", "x"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("groups %+v, want %+v", got, want)
	}
}

// crate is a volume plugin that takes emptyDirs from the stock one.
type crate struct{ *diary }

func (crate) Name() string                  { return "vendor.example/crate" }
func (crate) Supports(s volume.Source) bool { return s.Volume.EmptyDir != nil }

func (c crate) Mount(_ context.Context, req volume.MountRequest) (volume.MountResult, error) {
	c.note("mount " + req.Volume.Name)
	return volume.MountResult{HostPath: req.Dir}, os.MkdirAll(req.Dir, 0o750)
}

func (crate) Mounted(_ context.Context, req volume.MountedRequest) (volume.MountedResult, error) {
	_, err := os.Stat(req.Dir)
	return volume.MountedResult{Mounted: err == nil, HostPath: req.Dir}, nil
}

func (crate) Unmount(_ context.Context, req volume.UnmountRequest) error {
	return os.RemoveAll(req.Dir)
}

func TestVolumePluginTakesItsVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := actortest.New(t, runtimetest.Config{})
		d := &diary{}
		pod := actortest.Pod("1", "web", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		})
		a := newAgent(t, append(worldWithStockVolumes(t, b),
			nodefx.AddVolumePlugin("crate", crate{d}),
			nodefx.AddSource("go", pods{"go", []*corev1.Pod{pod}}),
		)...)
		must(t, a.Start(t.Context()))
		after(time.Second)
		if !d.has("mount data") {
			t.Errorf("the plugin was not asked to mount; it saw %q", d.lines)
		}
		seen := b.Seen(t, "1")
		if len(seen.Containers) != 1 {
			t.Fatalf("the pod does not run: %+v", seen)
		}
		cfg, _ := b.ContainerConfig(seen.Containers[0].ID)
		if len(cfg.Mounts) != 1 || !strings.Contains(cfg.Mounts[0].HostPath, "vendor.example~crate/data") {
			t.Errorf("mounts %+v", cfg.Mounts)
		}
		must(t, a.Stop(t.Context()))
	})
}

// worldWithStockVolumes leaves the default mounter in place.
func worldWithStockVolumes(t *testing.T, b *actortest.Bench) []nodefx.Option {
	return []nodefx.Option{
		nodefx.Config(config(t)),
		nodefx.Replace[node.Engine](func() *actortest.Bench { return b }),
		nodefx.Replace[node.Watcher](func() *actortest.Bench { return b }),
		nodefx.Replace[node.Puller](func() *actortest.Bench { return b }),
		nodefx.Replace[node.Specs](func() actortest.Specs { return actortest.Specs{} }),
		nodefx.Replace[node.HookRunner](func() noHandlers { return noHandlers{} }),
	}
}
