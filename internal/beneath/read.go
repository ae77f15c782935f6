package beneath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// stepLength is how much of a path is opened at once: the kernel takes 4095 bytes.
const stepLength = 2048

// ReadDir opens the directory rel below root for reading, however long the path
// is. It follows no symlink and enters no other mount: those give an error. The
// empty rel is root itself.
func ReadDir(root *os.File, rel string) (*os.File, error) {
	return readBelow(root, rel, openDirOnMount)
}

func readBelow(root *os.File, rel string, open opener) (*os.File, error) {
	at, owned := int(root.Fd()), -1
	for _, step := range steps(rel) {
		next, err := open(at, step)
		closeFD(owned)
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: filepath.Join(root.Name(), rel), Err: err}
		}
		at, owned = next, next
	}
	return os.NewFile(uintptr(owned), filepath.Join(root.Name(), rel)), nil
}

// steps cuts a path into parts that are short enough.
func steps(rel string) []string {
	parts := split(rel)
	if len(parts) == 0 {
		return []string{"."}
	}
	var out []string
	for len(parts) > 0 {
		n, length := 1, len(parts[0])
		for n < len(parts) && length+1+len(parts[n]) <= stepLength {
			length += 1 + len(parts[n])
			n++
		}
		out = append(out, strings.Join(parts[:n], "/"))
		parts = parts[n:]
	}
	return out
}

// openPartsByMountID is openDirByMountID for more than one name.
func openPartsByMountID(parent int, rel string) (int, error) {
	at, owned := parent, -1
	for _, name := range strings.Split(rel, "/") {
		if name == ".." {
			closeFD(owned)
			return -1, errors.Join(ErrEscapes, unix.EXDEV)
		}
		next, err := openDirByMountID(at, name)
		closeFD(owned)
		if err != nil {
			return -1, err
		}
		at, owned = next, next
	}
	return owned, nil
}
