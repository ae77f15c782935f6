package wire_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/podactor"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime/runtimetest"
)

// awaitFiles waits until the names of the files in a directory are as wanted.
func awaitFiles(t *testing.T, dir string, want func(names []string) bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for {
		var names []string
		entries, err := os.ReadDir(dir)
		must(t, err)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if want(names) {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("after 20 s %s has %q", dir, names)
		}
	}
}

// logBed is an agent whose only container writes its logs to dir.
func logBed(t *testing.T, script ...runtimetest.Behaviour) (w *runtimetest.World, cfg wire.Config, dir string) {
	t.Helper()
	w = runtimetest.NewWorld(t, runtimetest.Config{WriteLogs: true})
	w.Script("app", script[0], script[1:]...)
	cfg = config(t, w.Serve(t, t.TempDir()).Endpoint())
	cfg.Host.LogLinksDir = t.TempDir()
	dir = filepath.Join(cfg.PodLogsDir, "default_web_1", "app")
	must(t, os.MkdirAll(dir, 0o750))
	return w, cfg, dir
}

// TestNewLogIsRotatedAtOnce: a container that writes a lot as soon as it starts
// is not found by the interval, which would let it write for 10 s.
func TestNewLogIsRotatedAtOnce(t *testing.T) {
	lines := slices.Repeat([]runtimetest.Line{{Text: "a line of a container that talks"}}, 100)
	_, cfg, dir := logBed(t, runtimetest.Behaviour{Output: lines})
	cfg.Logs.MaxSize, cfg.Logs.Interval = 1000, time.Hour
	a := run(t, cfg, wire.WithSource(sourceOf(t, podNamed("1", "web"))))
	a.phases.await(t, "1", corev1.PodRunning)
	awaitFiles(t, dir, func(names []string) bool { return len(names) == 2 })
}

// TestCrashLooperKeepsFewFiles: a container's files go when it does, not when
// its pod does.
func TestCrashLooperKeepsFewFiles(t *testing.T) {
	crash := runtimetest.Behaviour{Output: []runtimetest.Line{{Text: "oops"}}, ExitCode: 1, RunFor: time.Millisecond}
	_, cfg, dir := logBed(t, crash, crash, crash, crash, runtimetest.Behaviour{})
	cfg.Node.Rules.BackoffBase, cfg.Node.Rules.BackoffMax = time.Millisecond, time.Millisecond
	pod := podNamed("1", "web", func(p *corev1.Pod) {
		p.Spec.Containers[0].TerminationMessagePath = "/dev/termination-log"
	})
	run(t, cfg, wire.WithSource(sourceOf(t, pod)))
	awaitFiles(t, dir, func(names []string) bool { return slices.Equal(names, []string{"3.log", "4.log"}) })
	awaitFiles(t, cfg.Host.LogLinksDir, func(names []string) bool { return len(names) == 2 })
	kept := []string{
		filepath.Base(podactor.TerminationLogPath(cfg.RootDir, "1", "app", 3)),
		filepath.Base(podactor.TerminationLogPath(cfg.RootDir, "1", "app", 4)),
	}
	slices.Sort(kept)
	awaitFiles(t, filepath.Join(cfg.RootDir, "pods/1/containers/app"), func(names []string) bool { return slices.Equal(names, kept) })
}
