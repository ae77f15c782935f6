package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// poll asks until the answer is yes. What another process does has no event
// that a test could wait on.
func poll(t *testing.T, what string, yes func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(20 * time.Second)
	for !yes() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: not after 20 s", what)
		}
	}
}

// await waits for a file that is complete.
func await(t *testing.T, dir, file string) {
	t.Helper()
	poll(t, file+" is written", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, file))
		return err == nil && len(text) > 0 && text[len(text)-1] == '\n'
	})
}

// awaitGone waits for the kernel to have buried a process whose parent is gone.
func awaitGone(t *testing.T, path string) {
	t.Helper()
	poll(t, "the process of "+path+" is gone", func() bool { return !alive(t, path) })
}
