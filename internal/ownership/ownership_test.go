package ownership_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"nodekit.dev/internal/beneath"
	"nodekit.dev/internal/beneath/beneathtest"
	"nodekit.dev/internal/needtest"
	"nodekit.dev/internal/ownership"
)

func TestMain(m *testing.M) { os.Exit(beneathtest.Main(m)) }

const group = 4242

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		needtest.SkipOrFail(t, "needs root to give files to a group")
	}
}

// plant makes files ("a/b") and directories ("a/") with the mode.
func plant(t testing.TB, dir string, mode fs.FileMode, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		folder := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			folder = path
		}
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if folder == path {
			continue
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
}

func stat(t testing.TB, path string) unix.Stat_t {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st
}

func wantOwner(t testing.TB, path string, gid, mode uint32) {
	t.Helper()
	if st := stat(t, path); st.Gid != gid || st.Mode&0o7777 != mode {
		t.Errorf("%s: group %d, mode %o; want %d, %o", path, st.Gid, st.Mode&0o7777, gid, mode)
	}
}

func TestGive(t *testing.T) {
	needRoot(t)
	for name, tc := range map[string]struct {
		readOnly           bool
		file, suid, folder uint32
	}{
		"read and write": {false, 0o664, 0o4775, 0o2770},
		"read-only":      {true, 0o644, 0o4755, 0o2750},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			plant(t, dir, 0o644, "file", "sub/deep/file", "empty/")
			plant(t, dir, 0o755|fs.ModeSetuid, "suid")
			if err := os.Chmod(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			done, err := ownership.Give(t.Context(), dir, ownership.Request{Group: group, ReadOnly: tc.readOnly})
			if err != nil || done.Files != 7 || done.Refused != 0 {
				t.Fatalf("%+v, %v", done, err)
			}
			wantOwner(t, filepath.Join(dir, "file"), group, tc.file)
			wantOwner(t, filepath.Join(dir, "sub/deep/file"), group, tc.file)
			wantOwner(t, filepath.Join(dir, "suid"), group, tc.suid)
			for _, folder := range []string{"", "sub", "sub/deep", "empty"} {
				wantOwner(t, filepath.Join(dir, folder), group, tc.folder)
			}
			before := stat(t, filepath.Join(dir, "file"))
			if _, err := ownership.Give(t.Context(), dir, ownership.Request{Group: group, ReadOnly: tc.readOnly}); err != nil {
				t.Fatal(err)
			}
			if after := stat(t, filepath.Join(dir, "file")); after.Ctim != before.Ctim {
				t.Error("a file that was as it should be was changed again")
			}
		})
	}
}

func TestGiveFollowsNoSymlinkAndCrossesNoMount(t *testing.T) {
	beneathtest.NeedMounts(t)
	dir, outside := t.TempDir(), t.TempDir()
	plant(t, outside, 0o600, "file", "sub/file")
	plant(t, dir, 0o600, "mounted/", "mountedfile")
	for link, target := range map[string]string{"link": "file", "linkdir": "sub"} {
		if err := os.Symlink(filepath.Join(outside, target), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for target, source := range map[string]string{"mounted": "sub", "mountedfile": "file"} {
		at := filepath.Join(dir, target)
		if err := unix.Mount(filepath.Join(outside, source), at, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	}
	if _, err := ownership.Give(t.Context(), dir, ownership.Request{Group: group}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "sub/file"} {
		wantOwner(t, filepath.Join(outside, name), 0, 0o600)
	}
	for _, name := range []string{"link", "linkdir"} {
		if st := stat(t, filepath.Join(dir, name)); st.Gid != group {
			t.Errorf("the symlink %s itself has the group %d", name, st.Gid)
		}
	}
	if _, err := ownership.Give(t.Context(), filepath.Join(dir, "linkdir"), ownership.Request{Group: group}); !errors.Is(err, beneath.ErrSymlink) {
		t.Errorf("a symlink in place of the volume: %v", err)
	}
}

// The volume's own directory says whether all is done, so it comes last.
func TestAWalkThatWasCutOffIsFinished(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	var names []string
	for i := range 3000 {
		names = append(names, fmt.Sprintf("d%d/f%d", i%7, i))
	}
	plant(t, dir, 0o600, names...)
	for _, after := range []int64{0, 1, 500, 2900} {
		ctx, cancel := context.WithCancel(t.Context())
		req := ownership.Request{Group: group, OnlyOnMismatch: true, Files: &atomic.Int64{}}
		go func() {
			for req.Files.Load() < after && ctx.Err() == nil {
				<-time.After(10 * time.Microsecond)
			}
			cancel()
		}()
		_, err := ownership.Give(ctx, dir, req)
		if done := stat(t, dir).Gid == group; done != (err == nil) {
			t.Fatalf("cut off after %d: %v, and the directory's group is %d", after, err, stat(t, dir).Gid)
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		cancel()
	}
	done, err := ownership.Give(t.Context(), dir, ownership.Request{Group: group, OnlyOnMismatch: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		wantOwner(t, filepath.Join(dir, name), group, 0o660)
	}
	// From now on nothing is looked at, unless that is asked for.
	plant(t, dir, 0o600, "new")
	if done, err = ownership.Give(t.Context(), dir, ownership.Request{Group: group, OnlyOnMismatch: true}); err != nil || done.Files != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	if done, err = ownership.Give(t.Context(), dir, ownership.Request{Group: group}); err != nil || done.Files != 3009 {
		t.Errorf("%+v, %v", done, err)
	}
	wantOwner(t, filepath.Join(dir, "new"), group, 0o660)
}

func TestWhatIsRefusedDoesNotHoldUpTheRest(t *testing.T) {
	beneathtest.NeedMounts(t)
	dir := t.TempDir()
	plant(t, dir, 0o600, "a", "fixed", "z")
	fixed := filepath.Join(dir, "fixed")
	flags(t, fixed, 0x10) // immutable
	t.Cleanup(func() { flags(t, fixed, 0) })
	done, err := ownership.Give(t.Context(), dir, ownership.Request{Group: group})
	if err != nil || done.Refused != 1 || !errors.Is(done.Refusal, fs.ErrPermission) || !strings.Contains(done.Refusal.Error(), fixed) {
		t.Fatalf("%+v, %v", done, err)
	}
	for _, name := range []string{"a", "z"} {
		wantOwner(t, filepath.Join(dir, name), group, 0o660)
	}
}

func flags(t testing.TB, path string, flags int) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, flags); err != nil {
		needtest.SkipOrFail(t, "the file system has no immutable files: "+err.Error())
	}
}

// A container changes the tree while it is walked: nothing outside is touched.
func TestGiveAgainstExchangedDirectories(t *testing.T) {
	needRoot(t)
	dir, outside := t.TempDir(), t.TempDir()
	plant(t, outside, 0o600, "f0", "f1", "f2")
	plant(t, dir, 0o600, "d/f0", "d/f1", "d/f2")
	if err := os.Symlink(outside, filepath.Join(dir, "l")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, "d"), unix.AT_FDCWD, filepath.Join(dir, "l"), unix.RENAME_EXCHANGE)
		}
	}()
	for i := range 2000 {
		if _, err := ownership.Give(t.Context(), dir, ownership.Request{Group: int64(group + i%2), Width: 2}); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	<-ended
	for _, name := range []string{"", "f0", "f1", "f2"} {
		if st := stat(t, filepath.Join(outside, name)); st.Gid != 0 || name != "" && st.Mode&0o777 != 0o600 {
			t.Errorf("%q outside of the volume: group %d, mode %o", name, st.Gid, st.Mode)
		}
	}
}

func BenchmarkGive(b *testing.B) {
	needRoot(b)
	dir := b.TempDir()
	var names []string
	for i := range 20_000 {
		names = append(names, fmt.Sprintf("d%d/f%d", i%100, i))
	}
	plant(b, dir, 0o600, names...)
	next := int64(group)
	run := func(name string, give func(group int64) error) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				next++
				if err := give(next); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("parallel", func(group int64) error {
		_, err := ownership.Give(b.Context(), dir, ownership.Request{Group: group})
		return err
	})
	run("one by one", func(group int64) error {
		_, err := ownership.Give(b.Context(), dir, ownership.Request{Group: group, Width: 1})
		return err
	})
	run("filepath.Walk", func(group int64) error { return walkInOrder(dir, int(group)) })
	run("nothing to change", func(int64) error {
		_, err := ownership.Give(b.Context(), dir, ownership.Request{Group: next})
		return err
	})
}

// walkInOrder is what one does without this package.
func walkInOrder(dir string, group int) error {
	return filepath.Walk(dir, func(path string, info fs.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return errors.Join(os.Lchown(path, -1, group), os.Chmod(path, info.Mode()|readWriteMode))
	})
}

const readWriteMode = 0o660
