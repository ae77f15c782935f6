package nodelogs

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"nodekit.dev/internal/beneath"
)

// folder is a directory as http.FileServer takes it, that nothing leads out of.
type folder struct{ dir string }

// Open implements http.FileSystem. Symlinks that stay below the directory are
// followed, also those that name it from the root, as the links of
// /var/log/containers do.
func (f folder) Open(name string) (http.File, error) {
	root, err := beneath.OpenDir(f.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	rel := strings.TrimPrefix(path.Clean("/"+name), "/")
	handle, err := f.handle(root, rel)
	if err != nil {
		return nil, err
	}
	defer handle.Close()
	info, err := handle.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() { // a pipe would block, a device do anything
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	fd, err := unix.Open(beneath.ProcPath(handle), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// handle opens what a path below the root names. Where a symlink named the
// directory from the root of the machine, what it names is opened in its place:
// below the directory again, whatever changed in between.
func (f folder) handle(root *os.File, rel string) (*os.File, error) {
	handle, err := beneath.Open(root, rel)
	if !errors.Is(err, beneath.ErrEscapes) {
		return handle, err
	}
	forbidden := &fs.PathError{Op: "open", Path: rel, Err: fs.ErrPermission}
	real, err := filepath.EvalSymlinks(filepath.Join(f.dir, rel))
	if err != nil {
		return nil, forbidden
	}
	base, err := filepath.EvalSymlinks(f.dir)
	if err != nil {
		return nil, forbidden
	}
	within, err := filepath.Rel(base, real)
	if err != nil || !filepath.IsLocal(within) {
		return nil, forbidden
	}
	handle, err = beneath.Open(root, within)
	if errors.Is(err, beneath.ErrEscapes) {
		return nil, forbidden
	}
	return handle, err
}
