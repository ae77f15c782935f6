package logs

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"nodekit.dev/internal/beneath"
)

// source reads raw lines from one file of a log. A line that has no newline
// yet stays with the source until it has.
type source struct {
	file *os.File
	gz   *gzip.Reader // nil for plain files
	buf  *bufio.Reader
	// read is how many bytes of the file were read.
	read int64
	held []byte
	// after skips entries up to that time: what was already read under
	// another name of the file.
	after time.Time
}

func openSource(path string, open opener) (*source, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	s := &source{file: f, buf: bufio.NewReaderSize(f, 64<<10)}
	if strings.HasSuffix(path, gzSuffix) {
		if s.gz, err = gzip.NewReader(s.buf); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		s.buf = bufio.NewReader(s.gz)
	}
	return s, nil
}

// opener opens one file of a log for reading.
type opener func(path string) (*os.File, error)

// within gives the opener of a request, see Request.Within.
func within(dir string) opener {
	if dir == "" {
		return os.Open
	}
	return func(path string) (*os.File, error) {
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return nil, err
		}
		root, err := beneath.OpenDir(dir)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		return beneath.OpenFile(root, rel)
	}
}

// openLatest opens the log, or in the moment between renaming and reopening
// the newest rotated one.
func openLatest(path string, open opener) (*source, error) {
	s, err := openSource(path, open)
	if !errors.Is(err, os.ErrNotExist) {
		return s, err
	}
	older, _, listErr := listRotated(path)
	if listErr != nil || len(older) == 0 {
		return nil, err
	}
	return openSource(older[len(older)-1].path, open)
}

// next returns the next whole line without its newline, or io.EOF when there
// is none now. The line is valid until the next call.
func (s *source) next() ([]byte, error) {
	chunk, err := s.buf.ReadSlice('\n')
	s.read += int64(len(chunk))
	switch {
	case err == nil && len(s.held) == 0:
		return chunk[:len(chunk)-1], nil
	case err == nil:
		whole := append(s.held, chunk...)
		s.held = nil
		return whole[:len(whole)-1], nil
	case errors.Is(err, bufio.ErrBufferFull):
		s.held = append(s.held, chunk...)
		return s.next()
	case errors.Is(err, io.EOF):
		s.held = append(s.held, bytes.Clone(chunk)...)
	}
	return nil, err
}

// seek continues at an offset of a plain file.
func (s *source) seek(offset int64) error {
	if _, err := s.file.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	s.buf.Reset(s.file)
	s.read, s.held = offset, nil
	return nil
}

// shrunk says that a plain file was cut below what was read of it.
func (s *source) shrunk() bool {
	info, err := s.file.Stat()
	return s.gz == nil && err == nil && info.Size() < s.read
}

// is says that the source reads the file that path names now.
func (s *source) is(path string) bool {
	ours, err1 := s.file.Stat()
	named, err2 := os.Stat(path)
	return err1 == nil && err2 == nil && os.SameFile(ours, named)
}

func (s *source) close() error {
	if s.gz != nil {
		return errors.Join(s.gz.Close(), s.file.Close())
	}
	return s.file.Close()
}
