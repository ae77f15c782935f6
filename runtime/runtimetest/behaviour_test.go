package runtimetest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"nodekit.dev/runtime"
	"nodekit.dev/runtime/runtimetest"
)

func TestCommands(t *testing.T) {
	tests := []struct {
		command  []string
		lasts    time.Duration // 0: until it is stopped
		code     int32
		stopCode int32
	}{
		{command: []string{"sh", "-c", "exit 3"}, lasts: time.Nanosecond, code: 3},
		{command: []string{"/bin/sh", "-c", "sleep 1; sleep 0.5; exit 300"}, lasts: 1500*time.Millisecond + 1, code: 44},
		{command: []string{"sh", "-c", "true; false"}, lasts: 1, code: 1},
		{command: []string{"sleep", "5"}, lasts: 5*time.Second + 1},
		{command: []string{"sleep", "infinity"}, stopCode: 137},
		{command: []string{"sh", "-c", "trap '' TERM; sleep infinity"}, stopCode: 137},
		{command: []string{"sh", "-c", `trap "exit 7" TERM; sleep 60 & wait`}, lasts: time.Minute + 1},
		{command: []string{"sh", "-c", "trap 'exit 7' TERM; sleep infinity"}, stopCode: 7},
		{command: []string{"nginx", "-g", "daemon off;"}},
		{command: nil},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.command, " "), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := runtimetest.NewWorld(t, runtimetest.Config{})
				_, _, id := pod(t, w, "u1", tt.command...)
				must(t, w.StartContainer(t.Context(), id))
				pass(time.Hour)
				if tt.lasts == 0 {
					if c := newest(t, w, "u1", "app"); c.State != runtime.ContainerRunning {
						t.Fatalf("after an hour: %+v", c)
					}
					must(t, w.StopContainer(t.Context(), id, time.Second))
					tt.code = tt.stopCode
				}
				c := newest(t, w, "u1", "app")
				if lasted := c.FinishedAt.Sub(c.StartedAt); c.ExitCode != tt.code || (tt.lasts > 0 && lasted != tt.lasts) {
					t.Errorf("ended with code %d after %s, want %d after %s", c.ExitCode, lasted, tt.code, tt.lasts)
				}
			})
		})
	}
}

func TestScriptByAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := runtimetest.NewWorld(t, runtimetest.Config{})
		noStart, noCreate := errors.New("no such user"), errors.New("no such device")
		w.Script("app", runtimetest.Behaviour{StartError: noStart})
		w.Script("default/pod-u1/app",
			runtimetest.Behaviour{RunFor: runtimetest.AtOnce, ExitCode: 1},
			runtimetest.Behaviour{StartError: noStart},
			runtimetest.Behaviour{CreateError: noCreate},
			runtimetest.Behaviour{})
		sandbox, sandboxID, id := pod(t, w, "u1")
		must(t, w.StartContainer(t.Context(), id))
		pass(time.Second)
		if c := newest(t, w, "u1", "app"); c.ExitCode != 1 {
			t.Errorf("attempt 0: %+v", c)
		}
		id, err := w.CreateContainer(t.Context(), sandboxID, runtimetest.ContainerFor(sandbox, "app", image, 1), sandbox)
		must(t, err)
		if err := w.StartContainer(t.Context(), id); err == nil || !strings.Contains(err.Error(), "no such user") {
			t.Errorf("attempt 1: error %v", err)
		}
		if c := newest(t, w, "u1", "app"); c.State != runtime.ContainerExited || c.ExitCode != 128 || c.Reason != "StartError" || c.Message != "no such user" {
			t.Errorf("attempt 1: %+v", c)
		}
		if _, err := w.CreateContainer(t.Context(), sandboxID, runtimetest.ContainerFor(sandbox, "app", image, 2), sandbox); !errors.Is(err, noCreate) {
			t.Errorf("attempt 2: error %v", err)
		}
		for attempt := range uint32(2) {
			id, err := w.CreateContainer(t.Context(), sandboxID, runtimetest.ContainerFor(sandbox, "app", image, 3+attempt), sandbox)
			must(t, err)
			must(t, w.StartContainer(t.Context(), id))
			must(t, w.StopContainer(t.Context(), id, 0))
		}
	})
}

func TestEndsFromOutside(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	_, _, id := pod(t, w, "u1")
	if w.Exit("u1", "app", 1) || w.OOMKill("u2", "app") {
		t.Error("something ended that does not run")
	}
	must(t, w.StartContainer(t.Context(), id))
	if !w.OOMKill("u1", "app") {
		t.Error("nothing was killed")
	}
	if c := newest(t, w, "u1", "app"); c.ExitCode != 137 || c.Reason != "OOMKilled" {
		t.Errorf("after the OOM kill: %+v", c)
	}
	if !w.KillSandbox("u1") || w.KillSandbox("u1") {
		t.Error("a sandbox dies once")
	}
}

func TestSharedPIDNamespaceDiesWithItsSandbox(t *testing.T) {
	for mode, want := range map[runtime.NamespaceMode]runtime.ContainerState{
		runtime.NamespacePod:       runtime.ContainerExited,
		runtime.NamespaceContainer: runtime.ContainerRunning,
	} {
		w := runtimetest.NewWorld(t, runtimetest.Config{})
		w.AddImage(image, runtimetest.RegistryImage{})
		sandbox := runtimetest.SandboxFor("default", "pod-u1", "u1", 0)
		sandbox.Security.Namespaces.PID = mode
		sandboxID, err := w.RunSandbox(t.Context(), sandbox)
		must(t, err)
		id, err := w.CreateContainer(t.Context(), sandboxID, runtimetest.ContainerFor(sandbox, "app", image, 0), sandbox)
		must(t, err)
		must(t, w.StartContainer(t.Context(), id))
		w.KillSandbox("u1")
		if c := newest(t, w, "u1", "app"); c.State != want {
			t.Errorf("PID mode %s: the container is %s, want %s", mode, c.State, want)
		}
	}
}

func TestTerminationMessageAndLog(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{WriteLogs: true})
	dir := t.TempDir()
	c := dial(t, w.Serve(t, dir).Endpoint())
	message := filepath.Join(dir, "message")
	must(t, os.WriteFile(message, nil, 0o600))
	w.Script("app", runtimetest.Behaviour{Message: "out of luck", Output: []runtimetest.Line{{Text: "first"}}})
	w.AddImage(image, runtimetest.RegistryImage{})
	sandbox := runtimetest.SandboxFor("default", "pod-u1", "u1", 0)
	sandbox.LogDirectory = dir
	sandboxID, err := w.RunSandbox(t.Context(), sandbox)
	must(t, err)
	cfg := runtimetest.ContainerFor(sandbox, "app", image, 0)
	cfg.Mounts = []runtime.Mount{{HostPath: message, ContainerPath: "/dev/termination-log"}}
	id, err := w.CreateContainer(t.Context(), sandboxID, cfg, sandbox)
	must(t, err)
	must(t, w.StartContainer(t.Context(), id))

	log := filepath.Join(dir, "app_0.log")
	must(t, os.Rename(log, log+".1"))
	must(t, w.ReopenLog(t.Context(), id))
	w.Print("u1", "app", runtimetest.Line{Text: "second", Stderr: true})
	w.Exit("u1", "app", 1)
	for file, want := range map[string]string{message: "out of luck", log + ".1": " stdout F first\n", log: " stderr F second\n"} {
		data, err := os.ReadFile(file)
		if err != nil || !strings.HasSuffix(string(data), want) {
			t.Errorf("%s holds %q, error %v; want %q", filepath.Base(file), data, err, want)
		}
	}
	if seen, err := c.LookPod(t.Context(), "u1"); err != nil || seen.Containers[0].Message != "" {
		t.Errorf("over the CRI the message is in the file alone: %+v, error %v", seen, err)
	}
}

func TestExec(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := runtimetest.NewWorld(t, runtimetest.Config{})
		_, _, id := pod(t, w, "u1")
		if _, err := w.Exec(t.Context(), id, []string{"true"}); err == nil {
			t.Error("a command ran in a container that was not started")
		}
		must(t, w.StartContainer(t.Context(), id))
		start := time.Now()
		got, err := w.Exec(t.Context(), id, []string{"sh", "-c", "echo a; echo b >&2; sleep 2; exit 4"})
		if err != nil || got != (runtimetest.ExecResult{Stdout: "a\n", Stderr: "b\n", ExitCode: 4}) || time.Since(start).Round(time.Second) != 2*time.Second {
			t.Errorf("result %+v after %s, error %v", got, time.Since(start), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.Exec(ctx, id, []string{"sleep", "60"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the deadline", err)
		}
	})
}

func TestImages(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	auth := runtime.ImageAuth{Username: "u", Password: "p"}
	uid := int64(7)
	w.Registry("private.example/app:1", runtimetest.RegistryImage{Auth: &auth, Size: 9, UID: &uid})
	w.Registry("broken.example/app:1", runtimetest.RegistryImage{Err: errPlanted})
	pull := func(name string, auth runtime.ImageAuth) (string, error) {
		return w.PullImage(t.Context(), runtime.ImagePull{Spec: runtime.ImageSpec{Image: name}, Auth: auth})
	}
	if _, err := pull("private.example/app:1", runtime.ImageAuth{}); err == nil || !strings.Contains(err.Error(), "access denied") {
		t.Errorf("a pull without credentials: %v", err)
	}
	if _, err := pull("broken.example/app:1", auth); !errors.Is(err, errPlanted) {
		t.Errorf("a pull from a broken registry: %v", err)
	}
	if _, err := pull(runtimetest.MissingDomain+"/app:1", auth); status.Code(err) != codes.NotFound {
		t.Errorf("a pull of a missing image: %v", err)
	}
	if _, err := pull("Not A Name", auth); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a pull of an invalid name: %v", err)
	}
	id, err := pull("private.example/app:1", auth)
	must(t, err)
	info, found, err := w.ImageStatus(t.Context(), runtime.ImageSpec{Image: id})
	if err != nil || !found || info.Size != 9 || *info.UID != 7 || info.RepoTags[0] != "private.example/app:1" {
		t.Errorf("status %+v, %t, error %v", info, found, err)
	}
	short, err := pull("busybox", auth)
	must(t, err)
	full, err := pull("docker.io/library/busybox:latest", auth)
	if err != nil || short != full {
		t.Errorf("two spellings of a name gave %s and %s, error %v", short, full, err)
	}
	if w.Calls(runtimetest.MethodPullImage) != 7 || w.MostAtOnce(runtimetest.MethodPullImage) != 1 {
		t.Errorf("%d pulls, %d at once", w.Calls(runtimetest.MethodPullImage), w.MostAtOnce(runtimetest.MethodPullImage))
	}
}

// populate makes n pods with a running container each.
func populate(b *testing.B, n int) *runtimetest.World {
	b.Helper()
	w := runtimetest.NewWorld(b, runtimetest.Config{})
	w.AddImage(image, runtimetest.RegistryImage{})
	for i := range n {
		life(b, w, fmt.Sprintf("u%d", i), false)
	}
	return w
}

func life(b *testing.B, w *runtimetest.World, uid string, whole bool) {
	b.Helper()
	check := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	ctx := b.Context()
	sandbox := runtimetest.SandboxFor("default", "pod-"+uid, uid, 0)
	sandboxID, err := w.RunSandbox(ctx, sandbox)
	check(err)
	id, err := w.CreateContainer(ctx, sandboxID, runtimetest.ContainerFor(sandbox, "app", image, 0), sandbox)
	check(err)
	check(w.StartContainer(ctx, id))
	if whole {
		check(w.StopContainer(ctx, id, time.Second))
		check(w.StopSandbox(ctx, sandboxID))
		check(w.RemoveSandbox(ctx, sandboxID))
	}
}

func BenchmarkLookPod(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := populate(b, n)
			for b.Loop() {
				if p, err := w.LookPod(b.Context(), "u7"); err != nil || p.Empty() {
					b.Fatal(p, err)
				}
			}
		})
	}
}

func BenchmarkPodLife(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := populate(b, n)
			for b.Loop() {
				life(b, w, "another", true)
			}
		})
	}
}
