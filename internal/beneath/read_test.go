package beneath

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"nodekit.dev/internal/beneath/beneathtest"
)

func TestReadDir(t *testing.T) {
	root, _, _ := tree(t)
	for name, by := range map[string]opener{"openat2": openDirOnMount, "by mount ID": openPartsByMountID} {
		for rel, want := range map[string]error{
			"": nil, "a": nil, "a//b": nil,
			"up": fs.ErrInvalid, "a/in": fs.ErrInvalid, "a/far": fs.ErrInvalid, // symlinks, wherever they lead
			"none": fs.ErrNotExist, "a/file": unix.ENOTDIR, "../outside": unix.EXDEV,
		} {
			dir, err := readBelow(root, rel, by)
			link := errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR)
			if want == nil && err != nil || errors.Is(want, fs.ErrInvalid) && !link || want != nil && !errors.Is(want, fs.ErrInvalid) && !errors.Is(err, want) {
				t.Errorf("%s: %q: %v, want %v", name, rel, err, want)
			}
			if err == nil {
				if _, err := dir.Readdirnames(-1); err != nil {
					t.Errorf("%s: %q: %v", name, rel, err)
				}
				dir.Close()
			}
		}
	}
}

// TestReadDirDeeperThanAPath: a path longer than the kernel takes at once.
func TestReadDirDeeperThanAPath(t *testing.T) {
	root, _, _ := tree(t)
	name := strings.Repeat("d", 250)
	at, err := unix.Open(root.Name(), unix.O_PATH|unix.O_DIRECTORY, 0)
	for range 40 {
		if err == nil {
			err = unix.Mkdirat(at, name, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		next, openErr := unix.Openat(at, name, unix.O_PATH, 0)
		closeFD(at)
		at, err = next, openErr
	}
	closeFD(at)
	dir, err := ReadDir(root, strings.Repeat(name+"/", 40))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if names, err := dir.Readdirnames(-1); err != nil || len(names) != 0 {
		t.Errorf("%v, %v", names, err)
	}
	if err := RemoveAll(t.Context(), root.Name()); err != nil { // t.TempDir could not
		t.Fatal(err)
	}
}

func TestReadDirEntersNoOtherMount(t *testing.T) {
	beneathtest.NeedMounts(t)
	root, dir, _ := tree(t)
	if err := os.Mkdir(dir+"/a/mount", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(dir+"/a/b", dir+"/a/mount", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir+"/a/mount", unix.MNT_DETACH) })
	for name, by := range map[string]opener{"openat2": openDirOnMount, "by mount ID": openPartsByMountID} {
		if _, err := readBelow(root, "a/mount", by); !errors.Is(err, unix.EXDEV) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
