package stats

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"nodekit.dev/internal/beneath"
	"nodekit.dev/internal/tasks"
)

const (
	// namesAtOnce is how many names of a directory are held.
	namesAtOnce = 512
	// keptAtOnce bounds what a walk remembers, directories to visit and files with
	// several names: the pod's users decide how many there are.
	keptAtOnce = 1 << 20
)

var errTooMany = errors.New("too many directories or hard links to count")

// counted is what a walk found.
type counted struct{ bytes, inodes int64 }

// directory is one to visit. Names are kept once, as paths can be long.
type directory struct {
	above *directory
	name  string
}

func (d *directory) path() string {
	var parts []string
	length := 0
	for at := d; at != nil; at = at.above {
		parts = append(parts, at.name)
		length += 1 + len(at.name)
	}
	path := make([]byte, 0, length)
	for i := len(parts) - 1; i >= 0; i-- {
		path = append(append(path, parts[i]...), '/')
	}
	return string(path)
}

// file names a file, whatever its names.
type file struct {
	dev   uint64
	inode uint64
}

// walker is one walk.
type walker struct {
	root  *os.File
	todo  []*directory
	links map[file]struct{} // with several names, that were counted
	sum   counted
	pace  pacer
}

// walk adds up what is in a directory on its own mount, itself included. A tree
// that changes meanwhile is counted as it was met.
func walk(ctx context.Context, path string, budget Walk) (counted, error) {
	root, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return counted{}, err
	}
	defer root.Close()
	w := &walker{root: root, todo: []*directory{nil}, links: map[file]struct{}{}, pace: newPacer(budget)}
	if _, err := w.add(int(root.Fd()), ""); err != nil {
		return counted{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	for len(w.todo) > 0 {
		last := len(w.todo) - 1
		dir := w.todo[last]
		w.todo = w.todo[:last]
		if err := w.visit(ctx, dir); err != nil {
			return counted{}, fmt.Errorf("walking %s: %w", path, err)
		}
	}
	return w.sum, nil
}

// visit counts the entries of a directory. One that is gone, or that became
// something else, has none.
func (w *walker) visit(ctx context.Context, dir *directory) error {
	open, err := beneath.ReadDir(w.root, dir.path())
	if err != nil {
		if changed(err) {
			return nil
		}
		return err
	}
	defer open.Close()
	for {
		if err := w.pace.step(ctx); err != nil {
			return err
		}
		names, err := open.Readdirnames(namesAtOnce)
		for _, name := range names {
			isDir, err := w.add(int(open.Fd()), name)
			if err != nil && !changed(err) {
				return &fs.PathError{Op: "stat", Path: name, Err: err}
			}
			if isDir {
				w.todo = append(w.todo, &directory{above: dir, name: name})
			}
		}
		if len(w.todo)+len(w.links) > keptAtOnce {
			return errTooMany
		}
		switch {
		case errors.Is(err, io.EOF), err == nil && len(names) == 0, err != nil && changed(err):
			return nil
		case err != nil:
			return err
		}
	}
}

// add counts one entry of an open directory, the empty name the directory
// itself, and says whether it is a directory to go into.
func (w *walker) add(dir int, name string) (isDir bool, err error) {
	var st unix.Statx_t
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT | unix.AT_STATX_DONT_SYNC
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	if err := unix.Statx(dir, name, flags, unix.STATX_TYPE|unix.STATX_INO|unix.STATX_NLINK|unix.STATX_BLOCKS, &st); err != nil {
		return false, err
	}
	if name != "" && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return false, nil // another mount: not what this volume holds
	}
	isDir = st.Mode&unix.S_IFMT == unix.S_IFDIR
	if !isDir && st.Nlink > 1 {
		id := file{unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino}
		if _, known := w.links[id]; known {
			return false, nil
		}
		w.links[id] = struct{}{}
	}
	w.sum.bytes += int64(st.Blocks) * 512
	w.sum.inodes++
	return isDir, nil
}

// changed says that somebody changed the tree under the walk.
func changed(err error) bool {
	for _, one := range []error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EXDEV, unix.ESTALE} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

// pacer has a walk rest after each slice of work.
type pacer struct {
	budget Walk
	until  time.Time
}

func newPacer(budget Walk) pacer { return pacer{budget, time.Now().Add(budget.Slice)} }

// step is called between two batches of work.
func (p *pacer) step(ctx context.Context) error {
	if time.Now().After(p.until) {
		if err := tasks.Pause(ctx, p.budget.Rest); err != nil {
			return context.Cause(ctx)
		}
		p.until = time.Now().Add(p.budget.Slice)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
