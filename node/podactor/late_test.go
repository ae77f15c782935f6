package podactor_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime"
)

// blindAtFirst is a watcher whose first look comes too early: what a call of a
// dead agent makes is not there yet. The looks after it may fail.
type blindAtFirst struct {
	podactor.Watcher
	looks atomic.Int32
	fails int32
}

func (w *blindAtFirst) Look(ctx context.Context, req podactor.LookRequest) (podactor.LookResult, error) {
	n := w.looks.Add(1)
	switch {
	case n == 1:
		<-time.After(callTakes)
		return podactor.LookResult{Pod: runtime.Pod{UID: req.UID}}, nil
	case n <= 1+w.fails:
		return podactor.LookResult{}, context.DeadlineExceeded
	}
	<-time.After(callTakes)
	return w.Watcher.Look(ctx, req)
}

// lastOfAll is a mounter that unmounts only where no sandbox is left.
type lastOfAll struct {
	podactor.Mounter
	s *stage
}

func (m lastOfAll) Unmount(ctx context.Context, req podactor.UnmountRequest) error {
	for _, sandbox := range m.s.Seen(m.s.T, m.s.want.UID).Sandboxes {
		if sandbox.Ready {
			m.s.Errorf("volume %s is unmounted under sandbox %s", req.Volume, sandbox.ID)
		}
	}
	return m.Mounter.Unmount(ctx, req)
}

func TestWhoTakesAwayLooksAgain(t *testing.T) {
	for name, fails := range map[string]int32{"at once": 0, "when the runtime answers again": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pod := actortest.Pod("u1", "web", func(p *corev1.Pod) {
					p.Spec.Volumes = []corev1.Volume{{Name: "data"}}
				})
				s := newStage(t, pod, func(s *stage) {
					sandbox, err := actortest.Specs{}.Sandbox(podactor.SandboxSpecRequest{Pod: pod})
					if err != nil {
						t.Fatal(err)
					}
					if _, err := s.World.RunSandbox(t.Context(), sandbox); err != nil {
						t.Fatal(err)
					}
					s.Mounts.Put("u1", "data")
					s.parts.Watcher = &blindAtFirst{Watcher: s.parts.Watcher, fails: fails}
					s.parts.Mounter = lastOfAll{Mounter: s.Mounts, s: s}
					s.want.Stop = &lifecycle.Stop{Reason: lifecycle.StopDeleted, At: time.Now(), Grace: time.Second}
				})
				s.gone(time.Minute)
			})
		})
	}
}
