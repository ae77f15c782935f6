package runtimetest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"nodekit.dev/runtime"
	"nodekit.dev/runtime/runtimetest"
)

// brokenRuntime is a World with one fault that no rule of the World sees, so
// that the suite must.
type brokenRuntime struct {
	*runtimetest.World
	how     string
	removed map[string]bool
}

func (b *brokenRuntime) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	switch b.how {
	case "stop does not wait":
		go func() { _ = b.World.StopContainer(context.WithoutCancel(ctx), id, grace) }()
		return nil
	case "stop kills at once":
		grace = 0
	case "stop ignores its context":
		ctx = context.WithoutCancel(ctx)
	}
	return b.World.StopContainer(ctx, id, grace)
}

func (b *brokenRuntime) RemoveSandbox(ctx context.Context, id string) error {
	if b.how == "remove fails for what is gone" && b.removed[id] {
		return errors.New("no such sandbox")
	}
	b.removed[id] = true
	return b.World.RemoveSandbox(ctx, id)
}

func (b *brokenRuntime) StartContainer(ctx context.Context, id string) error {
	err := b.World.StartContainer(ctx, id)
	if b.how == "failed start is a success" {
		return nil
	}
	return err
}

func (b *brokenRuntime) LookPod(ctx context.Context, uid string) (runtime.Pod, error) {
	p, err := b.World.LookPod(ctx, uid)
	switch b.how {
	case "look loses exit codes":
		for i := range p.Containers {
			p.Containers[i].ExitCode = 0
		}
	case "look is in the wrong order":
		slices.Reverse(p.Containers)
	case "unknown pod is an error":
		if p.Empty() {
			return p, errors.New("no such pod")
		}
	case "look loses IPs":
		for i := range p.Sandboxes {
			p.Sandboxes[i].IPs = nil
		}
	}
	return p, err
}

func (b *brokenRuntime) ListPods(ctx context.Context) ([]runtime.Pod, error) {
	all, err := b.World.ListPods(ctx)
	if b.how == "list leaves out a pod" && len(all) > 0 {
		all = all[1:]
	}
	return all, err
}

func (b *brokenRuntime) ReopenLog(ctx context.Context, id string) error {
	if b.how == "log is not reopened" {
		return nil
	}
	return b.World.ReopenLog(ctx, id)
}

func (b *brokenRuntime) PullImage(ctx context.Context, pull runtime.ImagePull) (string, error) {
	id, err := b.World.PullImage(ctx, pull)
	if b.how == "missing image is pulled" && err != nil {
		return "sha256:0", nil
	}
	return id, err
}

// brokenEnv makes this test binary run the suite on a broken runtime.
const brokenEnv = "NODEKIT_RUNTIMETEST_BROKEN"

func TestBrokenRuntime(t *testing.T) {
	how := os.Getenv(brokenEnv)
	if how == "" {
		return // runs below TestSuiteCatches only
	}
	runtimetest.SuiteInBubbles(t, func(t *testing.T) runtimetest.Subject {
		s := directly(t)
		b := &brokenRuntime{World: s.Sandboxes.(*runtimetest.World), how: how, removed: map[string]bool{}}
		s.Sandboxes, s.Containers, s.Pods, s.Images = b, b, b, b
		s.ReopenLog = b.ReopenLog
		if how == "no hints come" {
			s.Hints = make(chan runtime.Hint)
		}
		return s
	})
}

func TestSuiteCatches(t *testing.T) {
	for how, failing := range map[string]string{
		"stop does not wait":            "StopKillsAfterGrace",
		"stop kills at once":            "StopAsksFirst",
		"stop ignores its context":      "StopGivenUpCanBeRepeated",
		"remove fails for what is gone": "SandboxLife",
		"failed start is a success":     "StartFails",
		"look loses exit codes":         "ContainerExits",
		"look is in the wrong order":    "ContainerRestarts",
		"look loses IPs":                "SandboxLife",
		"unknown pod is an error":       "UnknownPodIsEmpty",
		"list leaves out a pod":         "List",
		"missing image is pulled":       "ImageMissing",
		"no hints come":                 "Hints",
		"log is not reopened":           "LogIsReopened",
	} {
		t.Run(how, func(t *testing.T) {
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBrokenRuntime$")
			child.Env = append(os.Environ(), brokenEnv+"="+how)
			out, err := child.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestBrokenRuntime/"+failing) {
				t.Errorf("want the case %s to fail; error %v:\n%s", failing, err, out)
			}
		})
	}
}
