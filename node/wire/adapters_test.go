package wire_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/node"
	"nodekit.dev/node/podspec"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime/cri"
	"nodekit.dev/runtime/images"
	"nodekit.dev/runtime/runtimetest"
	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
)

// clientOf is a CRI client of a World on a socket.
func clientOf(t *testing.T, w *runtimetest.World) *cri.Client {
	t.Helper()
	client, err := cri.New(cri.Config{Endpoint: w.Serve(t, t.TempDir()).Endpoint()})
	must(t, err)
	t.Cleanup(func() { must(t, client.Close()) })
	return client
}

// TestEngineReasons: each failed call has the stock kubelet's reason.
func TestEngineReasons(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	engine := wire.Engine(clientOf(t, w))
	ctx := t.Context()
	w.AddImage("registry.test/app:1", runtimetest.RegistryImage{})
	sandbox := runtimetest.SandboxFor("default", "web", "1", 0)
	ran, err := engine.RunSandbox(ctx, node.RunSandboxRequest{Config: sandbox})
	must(t, err)
	id := ran.SandboxID
	start := func(attempt uint32) error {
		_, err := engine.StartContainer(ctx, node.StartContainerRequest{
			SandboxID: id, Sandbox: sandbox,
			Config: runtimetest.ContainerFor(sandbox, "app", "registry.test/app:1", attempt),
		})
		return err
	}
	for _, tc := range []struct {
		method runtimetest.Method
		call   func() error
		want   string
	}{
		{runtimetest.MethodRunSandbox, func() error {
			_, err := engine.RunSandbox(ctx, node.RunSandboxRequest{Config: runtimetest.SandboxFor("default", "b", "2", 0)})
			return err
		}, "FailedCreatePodSandBox"},
		{runtimetest.MethodCreateContainer, func() error { return start(0) }, "CreateContainerError"},
		{runtimetest.MethodStartContainer, func() error { return start(1) }, "RunContainerError"},
		{runtimetest.MethodStopContainer, func() error {
			return engine.StopContainer(ctx, node.StopContainerRequest{ContainerID: "container-1"})
		}, "KillContainerError"},
		{runtimetest.MethodStopSandbox, func() error {
			return engine.StopSandbox(ctx, node.StopSandboxRequest{SandboxID: id})
		}, "FailedKillPod"},
	} {
		w.Fault(runtimetest.Fault{Kind: runtimetest.Fail, Method: tc.method, Nth: 1})
		err := tc.call()
		w.ClearFaults()
		if got := reasoned.Reason(err, "none"); err == nil || got != tc.want {
			t.Errorf("%s: reason %s of %v, want %s", tc.method, got, err, tc.want)
		}
	}
}

func TestEngineRuns(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	engine := wire.Engine(clientOf(t, w))
	ctx := t.Context()
	w.AddImage("registry.test/app:1", runtimetest.RegistryImage{})
	sandbox := runtimetest.SandboxFor("default", "web", "1", 0)
	ran, err := engine.RunSandbox(ctx, node.RunSandboxRequest{Config: sandbox})
	must(t, err)
	id := ran.SandboxID
	started, err := engine.StartContainer(ctx, node.StartContainerRequest{
		SandboxID: id, Sandbox: sandbox, Config: runtimetest.ContainerFor(sandbox, "app", "registry.test/app:1", 0),
	})
	must(t, err)
	must(t, engine.StopContainer(ctx, node.StopContainerRequest{ContainerID: started.ContainerID}))
	must(t, engine.Remove(ctx, node.RemoveRequest{ContainerID: started.ContainerID}))
	must(t, engine.StopSandbox(ctx, node.StopSandboxRequest{SandboxID: id}))
	must(t, engine.Remove(ctx, node.RemoveRequest{SandboxID: id}))
	w.CheckEmpty()
}

// TestPuller: the user of an image is a number where the image gives one, and
// an image that went away meanwhile is an error to try again.
func TestPuller(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	client := clientOf(t, w)
	p, err := images.New(images.DefaultConfig(), client)
	must(t, err)
	puller := wire.Puller(p, client)
	uid := int64(1000)
	w.Registry("registry.test/number:1", runtimetest.RegistryImage{UID: &uid})
	w.Registry("registry.test/name:1", runtimetest.RegistryImage{User: "web"})
	w.Registry("registry.test/root:1", runtimetest.RegistryImage{})
	for image, want := range map[string]string{"number": "1000", "name": "web", "root": ""} {
		got, err := puller.Pull(t.Context(), node.PullRequest{
			Pod: podNamed("1", "web"), Container: "app", Image: "registry.test/" + image + ":1", Policy: corev1.PullIfNotPresent,
		})
		if err != nil || got.User != want || got.Ref == "" {
			t.Errorf("%s: %+v, %v, want user %q", image, got, err, want)
		}
	}
	_, err = puller.Pull(t.Context(), node.PullRequest{Pod: podNamed("1", "web"), Image: "missing.invalid/x:1"})
	if reasoned.Reason(err, "") != "ErrImagePull" {
		t.Errorf("error %v", err)
	}
}

// TestFeatures: before the runtime has spoken the answer is yes, afterwards it
// is the runtime's.
func TestFeatures(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	client := clientOf(t, w)
	features := wire.Features(client)
	if got := features("none"); !got.RecursiveReadOnlyMounts || !got.SupplementalGroupsPolicy {
		t.Errorf("before: %+v", got)
	}
	_, err := client.Status(t.Context())
	must(t, err)
	said, err := client.Features(t.Context())
	must(t, err)
	want := podspec.RuntimeFeatures{
		RecursiveReadOnlyMounts: said.Handlers[""].RecursiveReadOnlyMounts, SupplementalGroupsPolicy: said.SupplementalGroupsPolicy,
	}
	if got := features(""); got != want {
		t.Errorf("afterwards: %+v, want %+v", got, want)
	}
	if features("none").RecursiveReadOnlyMounts {
		t.Error("a handler that the runtime does not have can do something")
	}
}

// TestHostsFile: containers that run have the file mounted, so it is written in
// place, before each container's mounts are told.
func TestHostsFile(t *testing.T) {
	cfg := config(t, "unix:///x.sock")
	cfg.Host.Hosts = true
	cfg, err := cfg.Complete()
	must(t, err)
	builder, err := podspec.New(cfg.Spec)
	must(t, err)
	manager, err := volume.New(cfg.Volume, plugins.Default(), slog.New(slog.DiscardHandler))
	must(t, err)
	mounter := wire.Mounter(manager, builder)
	pod := podNamed("1", "web", func(p *corev1.Pod) {
		p.Spec.HostAliases = []corev1.HostAlias{{IP: "192.0.2.7", Hostnames: []string{"db.test"}}}
	})
	path := filepath.Join(cfg.RootDir, "pods/1/etc-hosts")
	mount := func(ip string) os.FileInfo {
		_, err := mounter.ContainerMounts(t.Context(), node.ContainerMountsRequest{Pod: pod, Container: "app", PodIPs: []string{ip}})
		must(t, err)
		text, err := os.ReadFile(path)
		must(t, err)
		for _, want := range []string{ip + "\tweb\n", "192.0.2.7\tdb.test\n"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
		info, err := os.Stat(path)
		must(t, err)
		return info
	}
	first := mount("10.0.0.1")
	if !os.SameFile(first, mount("10.0.0.2")) {
		t.Error("the file was replaced")
	}
	before := mount("10.0.0.22")
	must(t, os.Chtimes(path, time.Time{}, before.ModTime().Add(-time.Hour)))
	if after := mount("10.0.0.22"); !after.ModTime().Equal(before.ModTime().Add(-time.Hour)) {
		t.Error("a file that said all of it already was written")
	}
	if longer := before.Size(); mount("10.0.0.2").Size() != longer-1 {
		t.Error("a shorter file keeps the end of the longer one")
	}
	must(t, os.Remove(path))
	must(t, os.Mkdir(path, 0o750))
	_, err = mounter.ContainerMounts(t.Context(), node.ContainerMountsRequest{Pod: pod, Container: "app"})
	if reasoned.Reason(err, "") != "CreateContainerConfigError" {
		t.Errorf("error %v", err)
	}
}

func TestLogLinks(t *testing.T) {
	dir, logs := filepath.Join(t.TempDir(), "containers"), t.TempDir()
	hook := wire.LogLinks(dir, logs, slog.New(slog.DiscardHandler))
	pod := podNamed("1", "web")
	container := filepath.Join(logs, "default_web_1", "app")
	must(t, hook.Started(t.Context(), pod, "app", "c0")) // the runtime wrote no log: no link
	must(t, os.MkdirAll(container, 0o750))
	links := func(want map[string]string) {
		t.Helper()
		got := map[string]string{}
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			target, err := os.Readlink(filepath.Join(dir, e.Name()))
			must(t, err)
			got[e.Name()] = target
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("links %v, want %v", got, want)
		}
	}
	log := func(name string) string {
		path := filepath.Join(container, name)
		must(t, os.WriteFile(path, nil, 0o600))
		return path
	}
	links(map[string]string{})
	first := log("0.log")
	for range 2 { // idempotent
		must(t, hook.Started(t.Context(), pod, "app", "containerd://c1"))
	}
	links(map[string]string{"web_default_app-c1.log": first})

	log("9.log.20260101-000000.gz")
	tenth := log("10.log") // 10 is newer than 9
	log("9.log")
	must(t, os.Remove(first))
	must(t, hook.Started(t.Context(), pod, "app", "c2"))
	links(map[string]string{"web_default_app-c2.log": tenth}) // and the dead one went

	must(t, os.Remove(tenth))
	must(t, os.Symlink("/nowhere", filepath.Join(dir, "other_default_app-c1.log"))) // another pod's
	must(t, hook.Cleanup(t.Context(), pod))
	must(t, hook.Cleanup(t.Context(), pod))
	links(map[string]string{"other_default_app-c1.log": "/nowhere"})
}

// TestLogLinksNeverFail: a failing hook would hold a container that runs.
func TestLogLinksNeverFail(t *testing.T) {
	dir, logs := filepath.Join(t.TempDir(), "containers"), t.TempDir()
	must(t, os.WriteFile(dir, nil, 0o600)) // a file where the links should go
	must(t, os.MkdirAll(filepath.Join(logs, "default_web_1", "app"), 0o750))
	must(t, os.WriteFile(filepath.Join(logs, "default_web_1", "app", "0.log"), nil, 0o600))
	var lines strings.Builder
	hook := wire.LogLinks(dir, logs, slog.New(slog.NewTextHandler(&lines, nil)))
	for _, id := range []string{"c1", "c2", "c3"} {
		must(t, hook.Started(t.Context(), podNamed("1", "web"), "app", id))
	}
	must(t, hook.Cleanup(t.Context(), podNamed("1", "web")))
	if got := strings.Count(lines.String(), "level=WARN"); got != 1 || !strings.Contains(lines.String(), "pod=default/web") {
		t.Errorf("want one warning, of the pod:\n%s", lines.String())
	}
}

func TestNothing(t *testing.T) {
	admission, err := wire.AdmitAll().Admit(t.Context(), node.AdmitRequest{Pod: podNamed("1", "web")})
	if err != nil || admission.Verdict != "Admit" {
		t.Errorf("%+v, %v", admission, err)
	}
	must(t, wire.AdmitAll().Release(t.Context(), "1"))
	must(t, wire.NoCgroups().Ensure(t.Context(), podNamed("1", "web")))
	must(t, wire.NoCgroups().Remove(t.Context(), "1"))
}
