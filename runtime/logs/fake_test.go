package logs

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeRuntime writes container logs as a runtime does: to the file it has
// open, wherever that was renamed to, until it is told to reopen.
type fakeRuntime struct {
	t   *testing.T
	dir string

	mu      sync.Mutex
	files   map[string]*os.File
	written map[string]int
	reopens map[string]int
	fail    error
	tookIt  bool // a failed reopen opened a new log all the same
	hang    chan struct{}
}

func newRuntime(t *testing.T, containers ...string) *fakeRuntime {
	f := &fakeRuntime{t: t, dir: t.TempDir(), files: map[string]*os.File{}, written: map[string]int{}, reopens: map[string]int{}}
	for _, id := range containers {
		if err := os.MkdirAll(filepath.Dir(f.path(id)), 0o755); err != nil {
			t.Fatal(err)
		}
		f.open(id)
	}
	t.Cleanup(func() {
		for _, file := range f.files {
			_ = file.Close()
		}
	})
	return f
}

func (f *fakeRuntime) path(id string) string { return filepath.Join(f.dir, id, "0.log") }

func (f *fakeRuntime) open(id string) {
	file, err := os.OpenFile(f.path(id), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		f.t.Error(err)
		return
	}
	if old := f.files[id]; old != nil {
		_ = old.Close()
	}
	f.files[id] = file
}

func (f *fakeRuntime) fails(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

// count is how often a container's log was reopened.
func (f *fakeRuntime) count(id string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reopens[id]
}

// write appends numbered lines.
func (f *fakeRuntime) write(id string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b strings.Builder
	for range n {
		b.WriteString(raw(f.written[id], Stdout, "F", fmt.Sprintf("line %d", f.written[id])))
		f.written[id]++
	}
	if _, err := f.files[id].WriteString(b.String()); err != nil {
		f.t.Error(err)
	}
}

func (f *fakeRuntime) ReopenContainerLog(ctx context.Context, id string) error {
	f.mu.Lock()
	hang := f.hang
	f.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reopens[id]++
	if f.fail == nil || f.tookIt {
		f.open(id)
	}
	return f.fail
}

func (f *fakeRuntime) RunningLogs(context.Context) ([]Log, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Log
	for id := range f.files {
		out = append(out, Log{ContainerID: id, Path: f.path(id)})
	}
	return out, nil
}

// names lists the files of a container's log without the log itself.
func (f *fakeRuntime) names(id string) []string {
	files, err := Files(f.path(id))
	if err != nil {
		f.t.Error(err)
	}
	var out []string
	for _, file := range files {
		if name := strings.TrimPrefix(filepath.Base(file), "0.log"); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// everything reads all lines of a log, rotated ones first.
func (f *fakeRuntime) everything(id string) string {
	older, temps, err := listRotated(f.path(id))
	if err != nil || len(temps) > 0 {
		f.t.Fatalf("left over %v, %v", temps, err)
	}
	var all bytes.Buffer
	for _, l := range append(older, rotated{path: f.path(id)}) {
		content, err := os.ReadFile(l.path)
		if err == nil && l.gz {
			content = unpack(f.t, content)
		}
		if err != nil {
			f.t.Fatal(err)
		}
		all.Write(content)
	}
	return all.String()
}

func unpack(t *testing.T, packed []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func wantLines(t *testing.T, content string, n int) {
	t.Helper()
	var want strings.Builder
	for i := range n {
		want.WriteString(raw(i, Stdout, "F", fmt.Sprintf("line %d", i)))
	}
	if content != want.String() {
		t.Fatalf("lines lost, torn or doubled: %d bytes, want %d", len(content), want.Len())
	}
}

// eventually waits for something that a background goroutine brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("never happened: " + what)
		}
	}
}
