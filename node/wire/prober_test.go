package wire

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/probe"
)

// checkup is an agent's prober over checks that a test decides on.
type checkup struct {
	*Prober
	stop func()
}

func newCheckup(t *testing.T, root string, healthy *atomic.Bool, anew bool) checkup {
	t.Helper()
	cfg := Default()
	cfg.RootDir, cfg.Log, cfg.Node.Rules.ProbesAfterRestart = root, slog.New(slog.DiscardHandler), anew
	check := probe.Check(func(context.Context, probe.Target) probe.Outcome {
		if healthy.Load() {
			return probe.Outcome{Result: probe.Success}
		}
		return probe.Outcome{Result: probe.Failure}
	})
	parts := ProbeParts{ProbeChecks: []node.Ordered[probe.Checker]{{Name: string(probe.Exec), Value: check}}}
	made, err := ProbeConfig(cfg, nil, parts, &ProbeEvents{})
	if err != nil {
		t.Fatal(err)
	}
	manager, err := probe.New(made)
	if err != nil {
		t.Fatal(err)
	}
	c := checkup{Prober: NewProber(cfg, manager)}
	ctx, cancel := context.WithCancel(t.Context())
	group := tasks.New(ctx)
	group.Go("probes", manager.Run)
	group.Go("probe-results", c.Run)
	c.stop = func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	}
	return c
}

func checkedPod() node.ProbeRequest {
	handler := corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "web", ReadinessProbe: &corev1.Probe{ProbeHandler: handler, PeriodSeconds: 5, FailureThreshold: 1},
	}}}}
	pod.Name, pod.Namespace, pod.UID = "web", "default", types.UID("u1")
	return node.ProbeRequest{Pod: pod, Run: lifecycle.ProbedRun{Container: "web", ContainerID: "c1", Host: "10.0.0.1"}}
}

// ready is what the prober knows when a pod's actor asks it to watch.
func (c checkup) ready(t *testing.T) bool {
	t.Helper()
	result, err := c.Watch(checkedPod())
	if err != nil || result.Probe.ContainerID != "c1" || result.Probe.Ready == nil {
		t.Fatalf("%+v, %v", result, err)
	}
	return *result.Probe.Ready
}

func (c checkup) wantResult(t *testing.T, ready bool) {
	t.Helper()
	for {
		select {
		case result := <-c.Results():
			if result.UID != "u1" || result.Container != "web" || result.Probe.Ready == nil {
				t.Fatalf("%+v", result)
			}
			if *result.Probe.Ready == ready {
				return
			}
		case <-time.After(time.Minute):
			t.Fatalf("no result says ready=%v", ready)
		}
	}
}

// TestProberOverRestarts: what was found is found again by the next agent, and
// a file that is torn stops nobody.
func TestProberOverRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, healthy := t.TempDir(), &atomic.Bool{}
		healthy.Store(true)
		first := newCheckup(t, root, healthy, false)
		if first.ready(t) {
			t.Error("ready before the first check")
		}
		first.wantResult(t, true)
		first.stop()

		second := newCheckup(t, root, healthy, false)
		if !second.ready(t) {
			t.Error("not ready after a restart")
		}
		healthy.Store(false)
		second.wantResult(t, false)
		<-time.After(10 * time.Second) // an agent that is killed has written by then
		file := filepath.Join(root, "prober_state")
		data, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(data), `"id":"c1"`) {
			t.Fatalf("%q, %v", data, err)
		}
		second.stop()

		if err := os.WriteFile(file, data[:len(data)-3], 0o600); err != nil {
			t.Fatal(err)
		}
		third := newCheckup(t, root, healthy, false)
		if third.ready(t) {
			t.Error("ready, by a torn file")
		}
		third.stop()
		if _, err := os.Stat(file + ".damaged"); err != nil {
			t.Errorf("the torn file is not set aside: %v", err)
		}
	})
}

// TestProberKeepsTheLastWord: what changes right after a write is on disk when
// the agent has stopped.
func TestProberKeepsTheLastWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, healthy := t.TempDir(), &atomic.Bool{}
		c := newCheckup(t, root, healthy, false)
		for _, id := range []string{"c1", "c2"} {
			req := checkedPod()
			req.Pod.UID, req.Run.ContainerID = types.UID("of-"+id), id
			if _, err := c.Watch(req); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // the file is written, and the next write is not due
		}
		c.stop()
		data, err := os.ReadFile(filepath.Join(root, "prober_state"))
		if err != nil || !strings.Contains(string(data), `"id":"c2"`) {
			t.Errorf("%q, %v", data, err)
		}
	})
}

// TestProberBeginsAnew where the gate ChangeContainerStatusOnKubeletRestart asks
// for it.
func TestProberBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, healthy := t.TempDir(), &atomic.Bool{}
		healthy.Store(true)
		for range 2 {
			c := newCheckup(t, root, healthy, true)
			if c.ready(t) {
				t.Error("ready before the first check")
			}
			c.wantResult(t, true)
			c.stop()
		}
	})
}

// TestProberRests: nothing is checked of a container whose run is being stopped.
func TestProberRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		healthy := &atomic.Bool{}
		c := newCheckup(t, t.TempDir(), healthy, false)
		c.ready(t)
		c.Rest(checkedPod())
		healthy.Store(true)
		<-time.After(time.Minute)
		select {
		case result := <-c.Results():
			if ready := result.Probe.Ready; ready != nil && *ready { // else from before the rest
				t.Errorf("%+v of a container at rest", result)
			}
		default:
		}
		c.Forget("u1")
		c.stop()
	})
}

// TestWorkloadOf has the names that controllers make.
func TestWorkloadOf(t *testing.T) {
	for name, c := range map[string]struct{ generate, hash, want string }{
		"web":             {"", "", "web"},
		"web-5d9c-x7k2p":  {"web-5d9c-", "5d9c", "web"},
		"agents-x7k2p":    {"agents-", "", "agents"},
		"db-0":            {"", "", "db-0"}, // a StatefulSet's
		"job-27001-x7k2p": {"job-27001-", "", "job-27001"},
		"bare":            {"b", "", "bare"},
	} {
		pod := &corev1.Pod{}
		pod.Name, pod.GenerateName = name, c.generate
		if c.hash != "" {
			pod.Labels = map[string]string{"pod-template-hash": c.hash}
		}
		if got := workloadOf(pod); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestProbeEvents(t *testing.T) {
	for want, outcome := range map[string]probe.Outcome{
		"": {Result: probe.Success, Output: "ok"},
		"Unhealthy: Liveness probe failed: HTTP probe failed with statuscode: 500":           {Result: probe.Failure, Output: "HTTP probe failed with statuscode: 500"},
		"ProbeWarning: Liveness probe warning: elsewhere":                                    {Result: probe.Warning, Output: "elsewhere"},
		"Unhealthy: Liveness probe errored and resulted in unknown state: no such container": {Err: errors.New("no such container")},
	} {
		event, told := eventOf(probe.Checked{Target: probe.Target{Type: probe.Liveness, Container: "web"}, Outcome: outcome})
		got := ""
		if told {
			got = event.Reason + ": " + event.Message
		}
		if got != want || event.Type != lifecycle.EventWarning || event.Container != "web" {
			t.Errorf("%+v, want %q", event, want)
		}
	}
}

// TestProbesWithoutExecer: a command that can not run says why.
func TestProbesWithoutExecer(t *testing.T) {
	cfg := Default()
	cfg.Log = slog.New(slog.DiscardHandler)
	made, err := ProbeConfig(cfg, nil, ProbeParts{}, &ProbeEvents{})
	if err != nil {
		t.Fatal(err)
	}
	handler := corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}
	got := made.Checks[probe.Exec](t.Context(), probe.Target{Handler: handler, ContainerID: "c1", Timeout: time.Second})
	if got.Result != probe.Unknown || got.Err == nil || !strings.Contains(got.Err.Error(), "runs no commands") {
		t.Errorf("%+v", got)
	}
}
