package podactor_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
)

// forgetful is a runtime that can not remove a sandbox while a process runs that
// it does not show, as containerd after a start that was cut off
// (containerd#11037), and the pod's cgroup with that process in it.
type forgetful struct {
	*actortest.Bench
	killed  atomic.Bool
	refused atomic.Int32
}

func (f *forgetful) Remove(ctx context.Context, req podactor.RemoveRequest) error {
	if req.SandboxID != "" && !f.killed.Load() {
		f.refused.Add(1)
		return errors.New("cannot delete running task: failed precondition")
	}
	return f.Bench.Remove(ctx, req)
}

// cgroup is the pod's cgroup.
type cgroup struct{ f *forgetful }

func (cgroup) Ensure(context.Context, *corev1.Pod) error { return nil }
func (c cgroup) Remove(context.Context, string) error {
	c.f.killed.Store(true)
	return nil
}

// TestForgottenProcessIsKilled: a pod that is over goes, although its runtime
// forgot a process of it.
func TestForgottenProcessIsKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &forgetful{}
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) {
			f.Bench = s.Bench
			s.parts.Engine, s.parts.Cgroups = f, cgroup{f}
		})
		s.after(time.Second)
		s.stop(lifecycle.StopDeleted, time.Second)
		s.gone(10 * time.Second)
		if n := f.refused.Load(); n != 1 {
			t.Errorf("the sandbox could not be removed %d times, want 1: the first failure may be of another kind", n)
		}
	})
}
