package app

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLockFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.lock")
	unlock, err := lockFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lockFile(ctx, path); err == nil || !strings.Contains(err.Error(), "unable to acquire file lock") {
		t.Errorf("a lock that another has: %v", err)
	}
	got := make(chan error, 1)
	go func() {
		again, err := lockFile(t.Context(), path)
		if err == nil {
			again()
		}
		got <- err
	}()
	unlock()
	if err := <-got; err != nil {
		t.Errorf("after it was let go: %v", err)
	}
	if _, err := lockFile(t.Context(), "/nowhere/kubelet.lock"); err == nil {
		t.Error("a folder that is not there")
	}
}

// With --exit-on-lock-contention the kubelet makes room for whoever opens the file.
func TestExitOnLockContention(t *testing.T) {
	b := newBed(t)
	path := filepath.Join(b.dir, "kubelet.lock")
	logs, stop := start(t, append(b.flags(t, ""), "--lock-file="+path, "--exit-on-lock-contention"))
	var parts []string
	b.get(t, "/debug/parts", &parts)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	await(t, "end of the kubelet", func() bool { return strings.Contains(logs.String(), "making room for it") })
	if code := stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	code, _, stderr := once(t, []string{"--exit-on-lock-contention"})
	if code != 1 || !strings.Contains(stderr, "failed to validate kubelet flags: cannot exit on lock file contention: no lock file specified") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}
