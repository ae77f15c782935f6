package machine

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// sizeOf is the size of the filesystem that holds dir, or of the one that will
// hold it once it is made.
func sizeOf(dir string) (int64, error) {
	for {
		var s unix.Statfs_t
		err := unix.Statfs(dir, &s)
		if err == nil {
			return int64(s.Blocks) * int64(s.Bsize), nil
		}
		parent := filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || parent == dir {
			return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
		}
		dir = parent
	}
}
