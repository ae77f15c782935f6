package runtimetest_test

import (
	"testing"

	"nodekit.dev/runtime/runtimetest"
)

const (
	suiteImage   = "registry.example/busybox:1"
	missingImage = runtimetest.MissingDomain + "/none:1"
)

func suiteWorld(t *testing.T) *runtimetest.World {
	t.Helper()
	w := runtimetest.NewWorld(t, runtimetest.Config{
		WriteLogs: true,
		Allow:     []runtimetest.Rule{runtimetest.RuleImageMissing},
	})
	t.Cleanup(w.CheckEmpty)
	return w
}

func killIn(w *runtimetest.World) func(*testing.T, string, string) {
	return func(t *testing.T, uid, _ string) {
		if !w.KillSandbox(uid) {
			t.Errorf("no sandbox of %s to kill", uid)
		}
	}
}

func directly(t *testing.T) runtimetest.Subject {
	w := suiteWorld(t)
	return runtimetest.Subject{
		Sandboxes: w, Containers: w, Pods: w, Images: w,
		Image: suiteImage, MissingImage: missingImage,
		LogDirectory: t.TempDir(),
		Hints:        w.Hints(),
		ReopenLog:    w.ReopenLog,
		KillSandbox:  killIn(w),
	}
}

func TestSuiteOnWorld(t *testing.T) { runtimetest.SuiteInBubbles(t, directly) }

func TestSuiteOnSocket(t *testing.T) {
	t.Parallel()
	runtimetest.Suite(t, func(t *testing.T) runtimetest.Subject {
		w := suiteWorld(t)
		c := dial(t, w.Serve(t, t.TempDir()).Endpoint())
		return runtimetest.Subject{
			Sandboxes: c, Containers: c, Pods: c, Images: c,
			Image: suiteImage, MissingImage: missingImage,
			LogDirectory: t.TempDir(),
			Hints:        c.hints(t),
			ReopenLog:    c.reopenLog,
			KillSandbox:  killIn(w),
		}
	})
}
