package beneath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// attempts bounds the tries against someone who changes the tree meanwhile.
const attempts = 16

// OpenDir opens a trusted path (its symlinks are followed) as the root of
// later calls.
func OpenDir(path string) (*os.File, error) {
	return openPath(unix.AT_FDCWD, path, path, unix.O_DIRECTORY)
}

// Open opens rel below root, whatever it is, for use as a handle (O_PATH).
// Symlinks are followed as long as they stay below root; one that leads out
// gives an error that matches [ErrEscapes]. The empty rel is root itself.
func Open(root *os.File, rel string) (*os.File, error) {
	return open(root, rel, openBeneath)
}

// OpenOrMkdir is Open that first makes the directories that are missing. They
// get mode whatever the umask is (unix permission bits, such as 0o2775).
// Existing ones stay as they are, but for those that an earlier call left half
// made. Idempotent, and safe beside other calls for the same path.
func OpenOrMkdir(root *os.File, rel string, mode uint32) (*os.File, error) {
	return openOrMkdir(root, rel, mode, openBeneath)
}

// OpenOnMount opens the file name in the directory dirfd, whatever it is and a
// symlink as itself, as a handle (O_PATH), for walks over many files. Where
// another mount begins there, the error is EXDEV.
func OpenOnMount(dirfd int, name string) (int, error) {
	const flags = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := openat2(dirfd, name, &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_NO_XDEV})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return openByMountID(dirfd, name, flags)
	}
	return fd, err
}

// ErrEscapes says that a path leads out of its root.
var ErrEscapes = errors.New("path leads out of its directory")

// opener opens rel below the directory dirfd with O_PATH.
type opener func(dirfd int, rel string) (int, error)

func open(root *os.File, rel string, by opener) (*os.File, error) {
	name := filepath.Join(root.Name(), rel)
	rel = strings.Join(split(rel), "/")
	if rel == "" {
		rel = "."
	}
	fd, err := by(int(root.Fd()), rel)
	switch {
	case err == nil:
		return os.NewFile(uintptr(fd), name), nil
	case errors.Is(err, unix.EXDEV), errors.Is(err, ErrEscapes):
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrEscapes}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: err}
}

func openOrMkdir(root *os.File, rel string, mode uint32, by opener) (*os.File, error) {
	parts := split(rel)
	var err error
	for range attempts {
		for i := range parts {
			if err = ensureDir(root, parts[:i], parts[i], mode, by); err != nil {
				break
			}
		}
		var file *os.File
		if err == nil {
			file, err = open(root, rel, by)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return file, err
		}
	}
	return nil, err // still missing: a dangling symlink, or someone removes what we make
}

// ensureDir makes name in the directory parent (below root) unless something
// of that name is there. A new directory has no permissions at all until its
// mode is set, so that a crash between the two steps can be told and mended.
func ensureDir(root *os.File, parent []string, name string, mode uint32, by opener) error {
	dir, err := open(root, strings.Join(parent, "/"), by)
	if err != nil {
		return err
	}
	defer dir.Close()
	path := filepath.Join(dir.Name(), name)
	if err := unix.Mkdirat(int(dir.Fd()), name, 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}
	made, err := openPath(int(dir.Fd()), name, path, unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return nil // a file or a symlink of that name: open says what it leads to
	}
	defer made.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(made.Fd()), &st); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&0o777 != 0 || int(st.Uid) != os.Geteuid() {
		return nil
	}
	if err := unix.Chmod(ProcPath(made), mode&0o7777); err != nil {
		return &fs.PathError{Op: "chmod", Path: path, Err: err}
	}
	return nil
}

// ProcPath is a path of the open file itself, for calls that take only paths
// (mount, chmod). It holds in this process until the file is closed.
func ProcPath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// openBeneath lets the kernel hold the path below dirfd.
func openBeneath(dirfd int, rel string) (int, error) {
	fd, err := openat2(dirfd, rel, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return walkBeneath(dirfd, rel)
	}
	return fd, err
}

// walkBeneath is openBeneath without openat2. It refuses all symlinks.
func walkBeneath(dirfd int, rel string) (int, error) {
	current := -1 // our own handle, once there is one
	for _, name := range append([]string{"."}, split(rel)...) {
		if name == ".." {
			closeFD(current)
			return -1, ErrEscapes
		}
		next, err := unix.Openat(dirfd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		closeFD(current)
		if err != nil {
			return -1, err
		}
		var st unix.Stat_t
		if err := unix.Fstat(next, &st); err != nil || st.Mode&unix.S_IFMT == unix.S_IFLNK {
			closeFD(next)
			return -1, errors.Join(err, unix.ELOOP)
		}
		current, dirfd = next, next
	}
	return current, nil
}

// openat2 tries again when the kernel saw a rename on the way or was interrupted.
func openat2(dirfd int, rel string, how *unix.OpenHow) (fd int, err error) {
	for range attempts * 8 {
		fd, err = unix.Openat2(dirfd, rel, how)
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
	return fd, err
}

func openPath(dirfd int, name, path string, flags int) (*os.File, error) {
	fd, err := unix.Openat(dirfd, name, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// split gives the parts of a relative path, without empty ones and dots.
func split(rel string) []string {
	var parts []string
	for part := range strings.SplitSeq(rel, "/") {
		if part != "" && part != "." {
			parts = append(parts, part)
		}
	}
	return parts
}

func closeFD(fd int) {
	if fd >= 0 {
		_ = unix.Close(fd) // an O_PATH handle: closing can not lose anything
	}
}
