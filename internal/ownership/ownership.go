package ownership

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"nodekit.dev/internal/beneath"
)

// Request says whose the files shall be.
type Request struct {
	Group    int64
	ReadOnly bool
	// OnlyOnMismatch leaves everything as it is where the volume's own directory
	// is the group's already.
	OnlyOnMismatch bool
	// Width is how many files are changed at the same time; 0 means 8.
	Width int
	// Files counts what was looked at, while the walk goes on; nil: nobody asks.
	Files *atomic.Int64
}

// Result tells what was done.
type Result struct {
	// Files is how many files and directories were looked at.
	Files int64
	// Refused is how many of them could not be changed, as on a server that maps
	// root to nobody, and Refusal why the first of them could not.
	Refused int64
	Refusal error
}

const (
	width = 8
	// batch is how many names of a directory are one piece of work.
	batch = 256
	// maxDepth bounds the open handles. No path of that depth can be named.
	maxDepth = 2048
)

// The permissions of the group.
const (
	readWrite = 0o660
	readOnly  = 0o440
	onDir     = 0o110 | unix.S_ISGID
)

// Give gives what is at dir and below it to the group. dir itself may be a
// mount point, but no symlink. It blocks until the walk is done; ctx ends it
// between two files. The call after an interrupted one is the same call.
func Give(ctx context.Context, dir string, req Request) (Result, error) {
	fd, err := unix.Open(dir, handle, 0)
	if err != nil {
		return Result{}, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	top := entry{fd: fd, path: dir}
	defer top.close()
	if err := unix.Fstat(fd, &top.st); err != nil {
		return Result{}, &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	if top.isLink() {
		return Result{}, &fs.PathError{Op: "open", Path: dir, Err: beneath.ErrSymlink}
	}
	if req.Files == nil {
		req.Files = &atomic.Int64{}
	}
	if req.Width == 0 {
		req.Width = width
	}
	w := &walk{req: req}
	if req.OnlyOnMismatch && top.isDir() && w.owns(top) {
		return Result{}, nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(req.Width)
	w.group = group
	group.Go(func() error { return w.below(ctx, top, 0) })
	if err := group.Wait(); err != nil {
		return w.result(), err
	}
	w.give(top)
	return w.result(), nil
}

// handle opens a file as such, not its content, and a symlink as itself.
const handle = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC

// entry is one file of the volume, open as a handle.
type entry struct {
	fd   int
	path string // for messages
	st   unix.Stat_t
}

func (e *entry) close() { _ = unix.Close(e.fd) } // a handle: closing can not lose anything

func (e *entry) isDir() bool  { return e.st.Mode&unix.S_IFMT == unix.S_IFDIR }
func (e *entry) isLink() bool { return e.st.Mode&unix.S_IFMT == unix.S_IFLNK }

// walk is one run of Give.
type walk struct {
	req     Request
	group   *errgroup.Group
	refused atomic.Int64
	refusal atomic.Pointer[error]
}

func (w *walk) result() Result {
	r := Result{Files: w.req.Files.Load(), Refused: w.refused.Load()}
	if err := w.refusal.Load(); err != nil {
		r.Refusal = *err
	}
	return r
}

// below changes all that is below a directory, not the directory itself. Its
// names are split into pieces, which others take where they have time.
func (w *walk) below(ctx context.Context, dir entry, depth int) error {
	if !dir.isDir() {
		return nil
	}
	shared := &sharedDir{entry: dir}
	shared.users.Add(1)
	defer shared.leave(depth)
	if depth > maxDepth {
		return fmt.Errorf("%s: more than %d directories deep", dir.path, maxDepth)
	}
	names, err := readNames(dir)
	if err != nil {
		return err
	}
	for len(names) > 0 {
		piece := names[:min(batch, len(names))]
		names = names[len(piece):]
		shared.users.Add(1)
		work := func() error {
			defer shared.leave(depth)
			return w.each(ctx, dir, piece, depth)
		}
		if len(names) > 0 && w.group.TryGo(work) {
			continue
		}
		if err := work(); err != nil {
			return err
		}
	}
	return nil
}

// sharedDir is a directory that several pieces of work have open.
type sharedDir struct {
	entry
	users atomic.Int64
}

// leave closes the directory after the last user. The topmost one is the
// caller's of Give.
func (d *sharedDir) leave(depth int) {
	if d.users.Add(-1) == 0 && depth > 0 {
		d.close()
	}
}

// each changes the named files of a directory, and what is below them.
func (w *walk) each(ctx context.Context, dir entry, names []string, depth int) error {
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("changing the group of %s: %w", dir.path, err)
		}
		e, ok, err := open(dir, name)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		w.give(e)
		if !e.isDir() {
			e.close()
			continue
		}
		work := func() error { return w.below(ctx, e, depth+1) }
		if w.group.TryGo(work) {
			continue
		}
		if err := work(); err != nil {
			return err
		}
	}
	return nil
}

// open opens a file of a directory; false where it is gone, or where another
// mount begins.
func open(dir entry, name string) (entry, bool, error) {
	e := entry{path: dir.path + "/" + name}
	var err error
	if e.fd, err = beneath.OpenOnMount(dir.fd, name); err == nil {
		if err = unix.Fstat(e.fd, &e.st); err != nil {
			e.close()
		}
	}
	switch {
	case errors.Is(err, unix.EXDEV), errors.Is(err, fs.ErrNotExist):
		return entry{}, false, nil
	case err != nil:
		return entry{}, false, &fs.PathError{Op: "open", Path: e.path, Err: err}
	}
	return e, true, nil
}

// readNames reads a directory through its handle.
func readNames(dir entry) ([]string, error) {
	fd, err := unix.Openat(dir.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // removed meanwhile
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir.path, Err: err}
	}
	list := os.NewFile(uintptr(fd), dir.path)
	defer list.Close()
	return list.Readdirnames(-1)
}

// want is the mode that a file shall have.
func (w *walk) want(e entry) uint32 {
	mode := e.st.Mode&0o7777 | readWrite
	if w.req.ReadOnly {
		mode = e.st.Mode&0o7777 | readOnly
	}
	if e.isDir() {
		mode |= onDir
	}
	return mode
}

// owns says whether a file is as it shall be.
func (w *walk) owns(e entry) bool {
	return int64(e.st.Gid) == w.req.Group && (e.isLink() || e.st.Mode&0o7777 == w.want(e))
}

// give changes one file. Where that is refused, the others are changed all the
// same, as the stock kubelet does: the container says what it can not read.
func (w *walk) give(e entry) {
	w.req.Files.Add(1)
	if w.owns(e) {
		return
	}
	if err := w.change(e); err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.refused.Add(1)
		err = &fs.PathError{Op: "change the group of", Path: e.path, Err: err}
		w.refusal.CompareAndSwap(nil, &err)
	}
}

func (w *walk) change(e entry) error {
	if int64(e.st.Gid) != w.req.Group {
		if err := unix.Fchownat(e.fd, "", -1, int(w.req.Group), unix.AT_EMPTY_PATH); err != nil {
			return err
		}
	}
	if e.isLink() {
		return nil
	}
	return chmod(e.fd, w.want(e)) // after the group, which takes setuid and setgid away
}

// chmod sets the mode of an open handle.
func chmod(fd int, mode uint32) error {
	err := unix.Fchmodat(fd, "", mode, unix.AT_EMPTY_PATH)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), mode) // older than Linux 6.6, or forbidden by seccomp
	}
	return err
}
