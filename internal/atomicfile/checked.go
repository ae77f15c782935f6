package atomicfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// A checked file is its data behind one header line, so that it stays readable
// for people: "nodekit-checked/1 sha256:<hex>\n".
const header = "nodekit-checked/1 sha256:"

// DamagedError says that a file is there but is not what WriteChecked wrote:
// torn by a crash, edited, or written by somebody else.
type DamagedError struct {
	Path string
	Why  string
}

func (e *DamagedError) Error() string { return fmt.Sprintf("read %s: %s", e.Path, e.Why) }

// WriteChecked is Write with a checksum in front of the data.
func WriteChecked(path string, data []byte, perm os.FileMode) error {
	framed := make([]byte, 0, len(header)+2*sha256.Size+1+len(data))
	framed = append(framed, header...)
	framed = append(framed, sum(data)...)
	framed = append(framed, '\n')
	return Write(path, append(framed, data...), perm)
}

// ReadChecked returns the data that WriteChecked wrote. The error is a
// *DamagedError when the content is not intact, and fits os.ErrNotExist when
// there is no file.
func ReadChecked(path string) ([]byte, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	line, data, ended := bytes.Cut(raw, []byte("\n"))
	want, ours := bytes.CutPrefix(line, []byte(header))
	switch {
	case !ours:
		return nil, &DamagedError{Path: path, Why: "not a checked file (foreign content)"}
	case !ended || string(want) != sum(data):
		return nil, &DamagedError{Path: path, Why: "checksum does not match (torn or edited)"}
	}
	return data, nil
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// keptAside bounds how many files of one name SetAside keeps.
const keptAside = 10

// SetAside renames path to path.suffix (path.suffix.1, ... where that is
// taken; the last one is overwritten), so that a damaged file can be looked at
// later. It returns the new name.
func SetAside(path, suffix string) (string, error) {
	base := path + "." + suffix
	kept := base
	for i := 1; i < keptAside && exists(kept); i++ {
		kept = base + "." + strconv.Itoa(i)
	}
	if err := os.Rename(path, kept); err != nil {
		return "", err
	}
	return kept, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}
