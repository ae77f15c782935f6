package beneath

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"nodekit.dev/internal/beneath/beneathtest"
	"nodekit.dev/internal/needtest"
)

func TestMain(m *testing.M) { os.Exit(beneathtest.Main(m)) }

func TestRemoveAll(t *testing.T) {
	_, dir, outside := tree(t)
	for i := range 3 * batch {
		if err := os.WriteFile(filepath.Join(dir, "a/b", fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := RemoveAll(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(outside, "secret")); err != nil {
		t.Errorf("removal followed a symlink: %v", err)
	}
	if err := RemoveAll(t.Context(), filepath.Join(dir, "no/such/parent")); err != nil {
		t.Errorf("missing parent: %v", err)
	}
}

func TestRemoveAllTakesASymlinkAway(t *testing.T) {
	_, dir, outside := tree(t)
	if err := RemoveAll(t.Context(), filepath.Join(dir, "abs")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(outside, "secret")); err != nil {
		t.Error(err)
	}
}

// TestRemoveAllDeep makes a tree deeper than PATH_MAX and the open-file limit
// allow to walk by path or with one open file each.
func TestRemoveAllDeep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 2500 {
		if err := unix.Mkdirat(fd, "d", 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(fd, "d", unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		closeFD(fd)
		fd = next
	}
	closeFD(fd)
	if err := RemoveAll(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
}

func TestRemoveAllStopsWithItsContext(t *testing.T) {
	_, dir, _ := tree(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := RemoveAll(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a/file")); err != nil {
		t.Errorf("removed something: %v", err)
	}
}

func TestRemoveAllGoesOnAfterAnError(t *testing.T) {
	beneathtest.NeedMounts(t)
	_, dir, _ := tree(t)
	stuck := filepath.Join(dir, "a/file")
	setImmutable(t, stuck, true)
	defer setImmutable(t, stuck, false)
	if err := RemoveAll(t.Context(), dir); !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOTEMPTY) {
		t.Fatalf("error %v", err)
	}
	if _, err := os.Lstat(stuck); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"a/b", "up", "gone"} {
		if _, err := os.Lstat(filepath.Join(dir, gone)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", gone, err)
		}
	}
}

// setImmutable skips where the file system knows no such flag (tmpfs does).
func setImmutable(t *testing.T, path string, on bool) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	flags := 0
	if on {
		flags = unix.STATX_ATTR_IMMUTABLE // the same bit as FS_IMMUTABLE_FL
	}
	if err := unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, flags); err != nil {
		needtest.SkipOrFail(t, "this file system has no immutable files: "+err.Error())
	}
}

func TestRemoveAllStopsAtMounts(t *testing.T) {
	beneathtest.NeedMounts(t)
	ways := map[string]func(int, string) (int, error){"openat2": openDirOnMount, "mount id": openDirByMountID}
	kinds := map[string]func(dir, outside string) (point string, err error){
		"directory": func(dir, outside string) (string, error) {
			point := filepath.Join(dir, "a/b")
			return point, unix.Mount(outside, point, "", unix.MS_BIND, "")
		},
		"file": func(dir, outside string) (string, error) {
			point := filepath.Join(dir, "a/file")
			return point, unix.Mount("/etc/passwd", point, "", unix.MS_BIND, "")
		},
		"root": func(dir, outside string) (string, error) {
			return dir, unix.Mount(outside, dir, "", unix.MS_BIND, "")
		},
	}
	for way, openDir := range ways {
		for kind, mount := range kinds {
			t.Run(way+"/"+kind, func(t *testing.T) {
				root, dir, outside := tree(t)
				point, err := mount(dir, outside)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = unix.Unmount(point, unix.MNT_DETACH) }()
				root.Close()
				parent, err := OpenDir(filepath.Dir(dir))
				if err != nil {
					t.Fatal(err)
				}
				defer parent.Close()
				r := remover{openDir: openDir, top: -1}
				err = r.remove(t.Context(), int(parent.Fd()), filepath.Base(dir), dir, 0)
				var mounted *MountError
				if !errors.As(err, &mounted) || mounted.Path != point {
					t.Errorf("error %v, want the mount point %s", err, point)
				}
				if _, err := os.Stat(filepath.Join(outside, "secret")); err != nil {
					t.Errorf("removed through a mount: %v", err)
				}
			})
		}
	}
}
