package wire_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nodekit.dev/node"
	"nodekit.dev/node/podactor"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime"
)

// removesOnly is an engine that notes what it removed, and what was still
// there then.
type removesOnly struct {
	node.Engine
	removed []node.RemoveRequest
	err     error
}

func (r *removesOnly) Remove(_ context.Context, req node.RemoveRequest) error {
	r.removed = append(r.removed, req)
	return r.err
}

// filesOf makes the files that a container leaves on the host.
func filesOf(t *testing.T, cfg wire.Config, c *runtime.Container) []string {
	t.Helper()
	uid := c.Labels[runtime.LabelPodUID]
	c.LogPath = filepath.Join(cfg.PodLogsDir, "default_web_"+uid, c.Name, c.Annotations[runtime.AnnotationRestartCount]+".log")
	files := []string{
		c.LogPath, c.LogPath + ".20260101-000000", c.LogPath + ".20260101-000001.gz", c.LogPath + ".20260101-000002.tmp",
		podactor.TerminationLogPath(cfg.RootDir, uid, c.Name, c.Attempt),
	}
	for _, path := range files {
		must(t, os.MkdirAll(filepath.Dir(path), 0o750))
		must(t, os.WriteFile(path, []byte("x"), 0o600))
	}
	link := filepath.Join(cfg.Host.LogLinksDir, "web_default_"+c.Name+"-"+c.ID+".log")
	must(t, os.Symlink(c.LogPath, link))
	return append(files, link)
}

func deadContainer(id, restarts string, attempt uint32) runtime.Container {
	return runtime.Container{
		ID: id, Name: "app", Attempt: attempt, State: runtime.ContainerExited,
		Labels: map[string]string{
			runtime.LabelPodName: "web", runtime.LabelPodNamespace: "default", runtime.LabelPodUID: "uid-1",
		},
		Annotations: map[string]string{runtime.AnnotationRestartCount: restarts},
	}
}

func left(paths []string) (there []string) {
	for _, path := range paths {
		if _, err := os.Lstat(path); err == nil {
			there = append(there, path)
		}
	}
	return there
}

// TestRemovingFiles: a container goes with all its files, and no other
// container's.
func TestRemovingFiles(t *testing.T) {
	cfg := config(t, "unix:///x.sock")
	cfg.Host.LogLinksDir, cfg.Log = t.TempDir(), slog.New(slog.DiscardHandler)
	first, second := deadContainer("c1", "0", 0), deadContainer("c2", "1", 1)
	gone, kept := filesOf(t, cfg, &first), filesOf(t, cfg, &second)
	inner := &removesOnly{}
	engine := wire.RemovingFiles(inner, cfg)
	for range 2 { // the call after a crash is the same call
		must(t, engine.Remove(t.Context(), node.RemoveRequest{ContainerID: "c1", Container: first}))
	}
	if there := left(gone); len(there) > 0 {
		t.Errorf("left: %q", there)
	}
	if there := left(kept); len(there) != len(kept) {
		t.Errorf("of the other container's files only these are left: %q", there)
	}
	must(t, engine.Remove(t.Context(), node.RemoveRequest{SandboxID: "s1"}))
	if len(inner.removed) != 3 || inner.removed[2].SandboxID != "s1" {
		t.Errorf("the runtime was asked for %+v", inner.removed)
	}
	inner.err = errors.New("busy")
	if err := engine.Remove(t.Context(), node.RemoveRequest{ContainerID: "c2", Container: second}); !errors.Is(err, inner.err) {
		t.Errorf("error %v, want the runtime's own", err)
	}
}

// TestFilesThatAreNotTheAgents: what the runtime says is not trusted with
// files elsewhere, and they do not keep the container.
func TestFilesThatAreNotTheAgents(t *testing.T) {
	cfg := config(t, "unix:///x.sock")
	var lines strings.Builder
	cfg.Log = slog.New(slog.NewTextHandler(&lines, nil))
	elsewhere := filepath.Join(t.TempDir(), "0.log")
	must(t, os.WriteFile(elsewhere, nil, 0o600))
	inner := &removesOnly{}
	c := deadContainer("c1", "0", 0)
	c.LogPath = cfg.PodLogsDir + "/../" + filepath.Base(filepath.Dir(elsewhere)) + "/0.log"
	c.Labels[runtime.LabelPodUID] = "../.."
	must(t, wire.RemovingFiles(inner, cfg).Remove(t.Context(), node.RemoveRequest{ContainerID: "c1", Container: c}))
	if len(left([]string{elsewhere})) == 0 || len(inner.removed) != 1 {
		t.Errorf("the file was removed, or the container was not: %+v", inner.removed)
	}
	if !strings.Contains(lines.String(), "not below "+cfg.PodLogsDir) {
		t.Errorf("log: %s", lines.String())
	}
}
