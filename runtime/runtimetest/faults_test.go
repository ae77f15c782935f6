package runtimetest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"nodekit.dev/runtime"
	"nodekit.dev/runtime/runtimetest"
)

var errPlanted = errors.New("no more disk")

func TestFaultKinds(t *testing.T) {
	config := runtimetest.SandboxFor("default", "web", "u1", 0)
	tests := []struct {
		name  string
		fault runtimetest.Fault
		err   error
		took  time.Duration
		made  bool
	}{
		{name: "slow", fault: runtimetest.Fault{Kind: runtimetest.Slow, Delay: 3 * time.Second}, took: 3 * time.Second, made: true},
		{name: "slower than the caller waits", fault: runtimetest.Fault{Kind: runtimetest.Slow, Delay: time.Hour}, err: context.DeadlineExceeded, took: time.Minute},
		{name: "hang", fault: runtimetest.Fault{Kind: runtimetest.Hang}, err: context.DeadlineExceeded, took: time.Minute},
		{name: "fail", fault: runtimetest.Fault{Kind: runtimetest.Fail, Err: errPlanted}, err: errPlanted},
		{name: "fail after the effect", fault: runtimetest.Fault{Kind: runtimetest.FailAfterEffect, Err: errPlanted}, err: errPlanted, made: true},
		{name: "hang after the effect", fault: runtimetest.Fault{Kind: runtimetest.HangAfterEffect}, err: context.DeadlineExceeded, took: time.Minute, made: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := runtimetest.NewWorld(t, runtimetest.Config{})
				planted := w.Fault(tt.fault)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				start := time.Now()
				id, err := w.RunSandbox(ctx, config)
				if !errors.Is(err, tt.err) || (err == nil) != (id != "") {
					t.Errorf("ID %q, error %v; want error %v", id, err, tt.err)
				}
				if took := time.Since(start); took != tt.took {
					t.Errorf("took %s, want %s", took, tt.took)
				}
				if planted.Hits() != 1 {
					t.Errorf("%d hits, want 1", planted.Hits())
				}
				w.ClearFaults()
				if made := !look(t, w, "u1").Empty(); made != tt.made {
					t.Errorf("a sandbox was made: %t, want %t", made, tt.made)
				}
			})
		})
	}
}

func TestReleaseLetsAHangGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := runtimetest.NewWorld(t, runtimetest.Config{})
		hang := w.Fault(runtimetest.Fault{Kind: runtimetest.Hang, Method: runtimetest.MethodRunSandbox})
		done := make(chan error)
		go func() {
			_, err := w.RunSandbox(t.Context(), runtimetest.SandboxFor("default", "web", "u1", 0))
			done <- err
		}()
		synctest.Wait()
		if !look(t, w, "u1").Empty() {
			t.Error("the sandbox was made while the call hung")
		}
		hang.Release()
		must(t, <-done)
		if look(t, w, "u1").Empty() {
			t.Error("the sandbox was not made after the release")
		}
	})
}

func TestFaultsHitWhatTheyMatch(t *testing.T) {
	tests := []struct {
		name  string
		fault runtimetest.Fault
		want  string // of five looks at u1, u2, u1, u1, u1: x failed, . did not
	}{
		{"all", runtimetest.Fault{}, "xxxxx"},
		{"one method", runtimetest.Fault{Method: runtimetest.MethodLook}, "xxxxx"},
		{"another method", runtimetest.Fault{Method: runtimetest.MethodList}, "....."},
		{"one pod", runtimetest.Fault{UID: "u1"}, "x.xxx"},
		{"the second of a pod", runtimetest.Fault{UID: "u1", Nth: 2}, "..x.."},
		{"the first two of a pod", runtimetest.Fault{UID: "u1", Times: 2}, "x.x.."},
		{"a container", runtimetest.Fault{Container: "app"}, "....."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := runtimetest.NewWorld(t, runtimetest.Config{})
			tt.fault.Kind = runtimetest.Fail
			w.Fault(tt.fault)
			if got := looks(t, w, "u1", "u2", "u1", "u1", "u1"); got != tt.want {
				t.Errorf("looks %s, want %s", got, tt.want)
			}
		})
	}
}

func looks(t *testing.T, w *runtimetest.World, uids ...string) string {
	t.Helper()
	got := ""
	for _, uid := range uids {
		if _, err := w.LookPod(t.Context(), uid); err != nil {
			got += "x"
		} else {
			got += "."
		}
	}
	return got
}

func TestChanceFollowsTheSeed(t *testing.T) {
	run := func(seed uint64) string {
		w := runtimetest.NewWorld(t, runtimetest.Config{Seed: seed})
		w.Fault(runtimetest.Fault{Kind: runtimetest.Fail, Probability: 0.5})
		return looks(t, w, make([]string, 64)...)
	}
	first := run(1)
	if again := run(1); first != again {
		t.Errorf("one seed gave %s and %s", first, again)
	}
	if first == run(2) {
		t.Error("two seeds gave one outcome")
	}
}

func TestLoseEvents(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	hints := w.Hints()
	w.Fault(runtimetest.Fault{Kind: runtimetest.LoseEvents, UID: "u1"})
	for _, uid := range []string{"u1", "u2"} {
		_, err := w.RunSandbox(t.Context(), runtimetest.SandboxFor("default", "web", uid, 0))
		must(t, err)
	}
	if h := <-hints; h.UID != "u2" {
		t.Errorf("hint of %q, want u2 only", h.UID)
	}
}

func TestSlowReaderOfHintsLooksAtAll(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{EventBuffer: 2})
	hints := w.Hints()
	for _, uid := range []string{"u1", "u2"} { // two hints each
		_, err := w.RunSandbox(t.Context(), runtimetest.SandboxFor("default", "web", uid, 0))
		must(t, err)
	}
	if first, second := <-hints, <-hints; first.UID != "" && second.UID != "" {
		t.Errorf("hints %v and %v; want one that stands for the lost ones", first, second)
	}
}

func TestDownFailsAllThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := runtimetest.NewWorld(t, runtimetest.Config{})
		w.Script("app", runtimetest.Behaviour{IgnoresTERM: true})
		w.Registry("registry.example/big:1", runtimetest.RegistryImage{Takes: time.Hour})
		_, _, id := pod(t, w, "u1")
		must(t, w.StartContainer(t.Context(), id))
		failed := make(chan error, 2)
		go func() { failed <- w.StopContainer(t.Context(), id, time.Hour) }()
		go func() {
			_, err := w.PullImage(t.Context(), runtime.ImagePull{Spec: runtime.ImageSpec{Image: "registry.example/big:1"}})
			failed <- err
		}()
		events := w.Subscribe(t.Context())
		synctest.Wait()
		w.Down()
		for range 2 {
			if err := <-failed; status.Code(err) != codes.Unavailable {
				t.Errorf("a call that waited got %v, want Unavailable", err)
			}
		}
		if _, open := <-events; open {
			t.Error("the events go on while the runtime is down")
		}
		if _, err := w.LookPod(t.Context(), "u1"); status.Code(err) != codes.Unavailable {
			t.Errorf("a call while the runtime is down got %v, want Unavailable", err)
		}
		must(t, w.Up())
		if c := newest(t, w, "u1", "app"); c.State != runtime.ContainerRunning {
			t.Errorf("after the restart the container is %s", c.State)
		}
		must(t, w.Reboot())
		if c := newest(t, w, "u1", "app"); c.State != runtime.ContainerExited || c.ExitCode != 255 || look(t, w, "u1").Sandboxes[0].Ready {
			t.Errorf("after the reboot: %+v", look(t, w, "u1"))
		}
	})
}

func TestNotReady(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	w.SetNetwork("cni plugin not initialized")
	s, err := w.Status(t.Context())
	must(t, err)
	if s.NetworkReady || !s.RuntimeReady || s.Message != "cni plugin not initialized" {
		t.Errorf("status %+v", s)
	}
	cfg := runtimetest.SandboxFor("default", "web", "u1", 0)
	if _, err := w.RunSandbox(t.Context(), cfg); err == nil {
		t.Error("a pod with a network of its own started without the network")
	}
	if !look(t, w, "u1").Empty() {
		t.Error("a failed start left something")
	}
	cfg.Security.Namespaces.Network = runtime.NamespaceNode
	if _, err := w.RunSandbox(t.Context(), cfg); err != nil {
		t.Errorf("a pod with the host's network: %v", err)
	}
	w.SetNetwork("")
	w.SetRuntime("shutting down")
	if s, err := w.Status(t.Context()); err != nil || s.RuntimeReady || !s.NetworkReady || s.Message != "shutting down" {
		t.Errorf("status %+v, error %v", s, err)
	}
}
