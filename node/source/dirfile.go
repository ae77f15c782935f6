package source

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// readManifest reads a regular file (or what a link points to), up to
// MaxManifest. It does not hang on a pipe.
func readManifest(path string) (data []byte, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	data, err = io.ReadAll(io.LimitReader(f, MaxManifest+1))
	if err == nil && len(data) > MaxManifest {
		err = errTooLarge
	}
	return data, err
}
