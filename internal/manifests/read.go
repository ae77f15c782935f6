package manifests

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// MaxSize is how large a manifest may be.
const MaxSize = 10 << 20

// ErrTooLarge says that a manifest is larger than MaxSize.
var ErrTooLarge = fmt.Errorf("larger than %d MiB", MaxSize>>20)

// Read reads a regular file (or what a link points to), up to
// MaxSize. It does not hang on a pipe.
func Read(path string) (data []byte, err error) {
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
	return readAll(f, readTime)
}

// readTime bounds the read of one manifest, where the kernel can: some files
// below /proc say that they are regular and then block for ever.
const readTime = 5 * time.Second

// readAll reads up to MaxSize. Files that can not be waited for, as most
// regular ones, have no deadline and need none.
func readAll(f *os.File, limit time.Duration) ([]byte, error) {
	if err := f.SetReadDeadline(time.Now().Add(limit)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, fmt.Errorf("%s: a read took longer than %v", f.Name(), limit)
	}
	if err == nil && len(data) > MaxSize {
		err = ErrTooLarge
	}
	return data, err
}
