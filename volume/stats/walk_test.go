package stats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"nodekit.dev/internal/beneath/beneathtest"
)

func TestMain(m *testing.M) { os.Exit(beneathtest.Main(m)) }

// unpaced walks without rests.
func unpaced() Walk { return Walk{Slice: time.Hour} }

// fill makes a file of so many bytes that are really there.
func fill(t testing.TB, path string, size int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err == nil {
		_, err = f.Write(bytes.Repeat([]byte("x"), size))
	}
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// du is what the program of that name counts, in bytes.
func du(t *testing.T, dir string, args ...string) int64 {
	t.Helper()
	out, err := exec.Command("du", append(args, "-x", "-s", dir)...).Output()
	if err != nil {
		t.Skipf("du: %v", err)
	}
	n, err := strconv.ParseInt(strings.Fields(string(out))[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestWalkCountsWhatDuCounts(t *testing.T) {
	dir := t.TempDir()
	outside := t.TempDir()
	fill(t, filepath.Join(outside, "huge"), 1<<20)
	fill(t, filepath.Join(dir, "ten"), 10<<20)
	for i := range 700 { // more than are read at once
		fill(t, filepath.Join(dir, "many", strconv.Itoa(i)), i%5)
	}
	for _, err := range []error{
		os.Link(filepath.Join(dir, "ten"), filepath.Join(dir, "many/again")),
		os.Symlink(outside, filepath.Join(dir, "out")),
		os.Symlink("many", filepath.Join(dir, "in")),
		unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
		os.Truncate(filepath.Join(dir, "many/0"), 1<<40), // a hole holds nothing
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := walk(t.Context(), dir, unpaced())
	if err != nil {
		t.Fatal(err)
	}
	if want := du(t, dir, "--block-size=1"); got.bytes != want || want < 10<<20 {
		t.Errorf("%d bytes, du says %d", got.bytes, want)
	}
	if want := du(t, dir, "--inodes"); got.inodes != want {
		t.Errorf("%d inodes, du says %d", got.inodes, want)
	}
}

func TestWalkEntersNoMount(t *testing.T) {
	beneathtest.NeedMounts(t)
	dir, other := t.TempDir(), t.TempDir()
	fill(t, filepath.Join(other, "f"), 1<<20)
	fill(t, filepath.Join(dir, "own"), 1)
	before, err := walk(t.Context(), dir, unpaced())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bind", "tmpfs"} {
		target := filepath.Join(dir, name)
		if err := os.Mkdir(target, 0o755); err != nil {
			t.Fatal(err)
		}
		if name == "bind" { // the same file system, so that only the mount tells
			err = unix.Mount(other, target, "", unix.MS_BIND, "")
		} else {
			err = unix.Mount("tmpfs", target, "tmpfs", 0, "")
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
		fill(t, filepath.Join(target, "g"), 1<<20)
	}
	if got, err := walk(t.Context(), dir, unpaced()); err != nil || got != before {
		t.Errorf("%+v, %v; without mounts %+v", got, err, before)
	}
}

func TestWalkOfADeepTree(t *testing.T) {
	dir := t.TempDir()
	at, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	const depth = 2000 // longer than a path may be, more than there may be open files
	for range depth {
		if err := unix.Mkdirat(at, "deeper", 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(at, "deeper", unix.O_PATH, 0)
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(at)
		at = next
	}
	_ = unix.Close(at)
	if got, err := walk(t.Context(), dir, unpaced()); err != nil || got.inodes != depth+1 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := exec.Command("rm", "-rf", filepath.Join(dir, "deeper")).Run(); err != nil {
		t.Fatal(err)
	}
}

// TestWalkOfATreeThatChanges: a container makes and removes files, and swaps
// directories for symlinks that lead out, while its volume is walked.
func TestWalkOfATreeThatChanges(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	fill(t, filepath.Join(outside, "deep/secret"), 64<<20)
	for i := range 20 {
		fill(t, filepath.Join(dir, "d", strconv.Itoa(i), "f"), 1)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "evil")); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, "d"), unix.AT_FDCWD, filepath.Join(dir, "evil"), unix.RENAME_EXCHANGE)
			name := filepath.Join(dir, fmt.Sprint("new", i%7))
			_ = os.Mkdir(name, 0o755)
			_ = os.Remove(name)
		}
	}()
	for range 500 {
		got, err := walk(t.Context(), dir, unpaced())
		if err != nil {
			t.Fatal(err)
		}
		if got.bytes >= 64<<20 {
			t.Fatalf("%d bytes: it went outside", got.bytes)
		}
	}
	close(stop)
	<-done
}

func TestWalkEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	fill(t, filepath.Join(dir, "f"), 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errTimeout)
	if _, err := walk(ctx, dir, unpaced()); !errors.Is(err, errTimeout) {
		t.Errorf("error %v", err)
	}
	if _, err := walk(t.Context(), filepath.Join(dir, "f"), unpaced()); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("a file: %v", err)
	}
}

func TestWalkRests(t *testing.T) {
	dir := t.TempDir()
	for i := range 30 {
		fill(t, filepath.Join(dir, strconv.Itoa(i), "f"), 1)
	}
	start := time.Now()
	if _, err := walk(t.Context(), dir, Walk{Slice: 1, Rest: 2 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < 60*time.Millisecond { // 31 directories, at least one rest for each
		t.Errorf("done after %v", took)
	}
}
