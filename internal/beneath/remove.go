package beneath

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// maxDepth bounds open files and stack: what lies deeper is first moved up.
	maxDepth = 64
	// batch is how many names of a directory are held at once.
	batch = 256
)

// MountError says that something is mounted where a removal wanted to go on.
type MountError struct{ Path string }

func (e *MountError) Error() string { return e.Path + " is a mount point" }

// RemoveAll removes path with all below it; what is gone already is fine. The
// directory that holds path is trusted, path itself may be anything. It
// follows no symlink and stops at the first mount with a *MountError; after
// other errors it goes on, and returns the first. ctx ends it between two
// files. The call after an interrupted one goes on where that ended.
func RemoveAll(ctx context.Context, path string) error {
	parent, err := OpenDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.Close()
	r := remover{openDir: openDirOnMount, top: -1}
	return r.remove(ctx, int(parent.Fd()), filepath.Base(path), path, 0)
}

// remover is one run of RemoveAll.
type remover struct {
	// openDir opens a directory for reading; EXDEV when another mount starts there.
	openDir func(parent int, name string) (int, error)
	top     int // the first directory of the run, where deep ones are moved
	moved   int
}

func (r *remover) remove(ctx context.Context, parent int, name, path string, depth int) error {
	unlinkErr := unix.Unlinkat(parent, name, 0)
	switch {
	case unlinkErr == nil, errors.Is(unlinkErr, unix.ENOENT):
		return nil
	case errors.Is(unlinkErr, unix.EBUSY):
		return &MountError{Path: path}
	case !errors.Is(unlinkErr, unix.EISDIR) && !errors.Is(unlinkErr, unix.EPERM):
		return &fs.PathError{Op: "unlink", Path: path, Err: unlinkErr}
	}
	if depth > maxDepth {
		return r.moveUp(parent, name, path)
	}
	fd, err := r.openDir(parent, name)
	switch {
	case errors.Is(err, unix.EXDEV):
		return &MountError{Path: path}
	case errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return &fs.PathError{Op: "unlink", Path: path, Err: unlinkErr}
	case err != nil:
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	dir := os.NewFile(uintptr(fd), path)
	defer dir.Close()
	if r.top < 0 {
		r.top = fd
	}
	if err := r.empty(ctx, dir, depth); err != nil {
		return err
	}
	switch err := unix.Unlinkat(parent, name, unix.AT_REMOVEDIR); {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EBUSY):
		return &MountError{Path: path}
	default:
		return &fs.PathError{Op: "rmdir", Path: path, Err: err}
	}
}

// empty removes what is in dir, a batch of names at a time, until it is empty
// or a whole batch could not be removed.
func (r *remover) empty(ctx context.Context, dir *os.File, depth int) error {
	for {
		names, err := dir.Readdirnames(batch)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(names) == 0 {
			return nil
		}
		var first error
		failed := 0
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("removing %s: %w", dir.Name(), err)
			}
			err := r.remove(ctx, int(dir.Fd()), name, filepath.Join(dir.Name(), name), depth+1)
			var mount *MountError
			if errors.As(err, &mount) || err != nil && ctx.Err() != nil {
				return err
			}
			if err != nil {
				failed++
				first = cmp.Or(first, err)
			}
		}
		if failed == len(names) {
			return first
		}
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
}

// moveUp brings a deep directory to the top of the run, whose next batch finds it.
func (r *remover) moveUp(parent int, name, path string) error {
	for {
		err := unix.Renameat2(parent, name, r.top, fmt.Sprintf(".removing-%d", r.moved), unix.RENAME_NOREPLACE)
		r.moved++
		if errors.Is(err, unix.EEXIST) {
			continue // left by an interrupted run
		}
		if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EXDEV) {
			return &MountError{Path: path}
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return &fs.PathError{Op: "rename", Path: path, Err: err}
		}
		return nil
	}
}

const readDir = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK

// openDirOnMount opens a directory unless another mount starts there. The
// first one of a run counts as well: a removal never starts on a mount point.
func openDirOnMount(parent int, name string) (int, error) {
	fd, err := openat2(parent, name, &unix.OpenHow{Flags: readDir, Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return openPartsByMountID(parent, name)
	}
	return fd, err
}

// openDirByMountID is openDirOnMount without openat2.
func openDirByMountID(parent int, name string) (int, error) {
	return openByMountID(parent, name, readDir)
}

// openByMountID opens a file unless another mount starts there.
func openByMountID(parent int, name string, flags int) (int, error) {
	fd, err := unix.Openat(parent, name, flags, 0)
	if err != nil {
		return -1, err
	}
	above, err1 := mountID(parent)
	here, err2 := mountID(fd)
	if err := errors.Join(err1, err2); err != nil || above != here {
		closeFD(fd)
		return -1, cmp.Or(err, error(unix.EXDEV))
	}
	return fd, nil
}

// mountID reads which mount an open file is on.
func mountID(fd int) (string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil {
		return "", err
	}
	_, rest, found := strings.Cut(string(data), "mnt_id:")
	if !found {
		return "", fmt.Errorf("no mnt_id in fdinfo")
	}
	id, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(id), nil
}
