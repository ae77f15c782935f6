package wire_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"nodekit.dev/node"
	"nodekit.dev/node/wire"
)

// dirsOnly is a mounter that notes whose directories it removed.
type dirsOnly struct {
	node.Mounter
	removed []string
	err     error
}

func (d *dirsOnly) RemovePodDir(_ context.Context, uid string) error {
	d.removed = append(d.removed, uid)
	return d.err
}

func TestRemovingLogs(t *testing.T) {
	logs, links := t.TempDir(), t.TempDir()
	mine := writeLog(t, logs, links, "default_web_uid-1", "web_default_main-aaa.log")
	other := writeLog(t, logs, links, "default_web_uid-2", "web_default_main-bbb.log")
	dirs := &dirsOnly{}
	m := wire.RemovingLogs(dirs, logs, links)
	for range 2 { // the call after a crash is the same call
		if err := m.RemovePodDir(t.Context(), "uid-1"); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range mine {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
	for _, path := range other {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("another pod under the same name lost %s", path)
		}
	}
	if !slices.Equal(dirs.removed, []string{"uid-1", "uid-1"}) {
		t.Errorf("the directories of %q were removed", dirs.removed)
	}
	dirs.err = errors.New("busy")
	if err := m.RemovePodDir(t.Context(), "uid-1"); !errors.Is(err, dirs.err) {
		t.Errorf("got %v, want the mounter's own error", err)
	}
}

// writeLog makes a pod's log and a link to it, and returns both paths.
func writeLog(t *testing.T, logs, links, pod, link string) []string {
	t.Helper()
	dir := filepath.Join(logs, pod, "main")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	log, to := filepath.Join(dir, "0.log"), filepath.Join(links, link)
	if err := errors.Join(os.WriteFile(log, []byte("x"), 0o600), os.Symlink(log, to)); err != nil {
		t.Fatal(err)
	}
	return []string{filepath.Join(logs, pod), to}
}
