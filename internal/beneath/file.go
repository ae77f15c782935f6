package beneath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrNotRegular says that what should be read is no regular file: a read of a
// pipe could block for ever, one of a device could do anything.
var ErrNotRegular = errors.New("not a regular file")

// ErrSymlink says that a path leads over a symlink where none is followed.
var ErrSymlink = errors.New("a symlink is in the path")

// OpenFile opens the regular file rel below root for reading. No symlink is
// followed, not even one that stays below root ([ErrSymlink]), so that each
// directory's owner decides what is read in its name.
func OpenFile(root *os.File, rel string) (*os.File, error) {
	name := filepath.Join(root.Name(), rel)
	fail := func(err error) (*os.File, error) { return nil, &fs.PathError{Op: "open", Path: name, Err: err} }
	fd, err := walkBeneath(int(root.Fd()), rel)
	switch {
	case errors.Is(err, unix.ELOOP):
		return fail(fmt.Errorf("%w: %w", ErrSymlink, unix.ELOOP))
	case err != nil:
		return fail(err)
	}
	handle := os.NewFile(uintptr(fd), name)
	defer handle.Close()
	info, err := handle.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return fail(ErrNotRegular)
	}
	readFD, err := unix.Open(ProcPath(handle), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	return os.NewFile(uintptr(readFD), name), nil
}
