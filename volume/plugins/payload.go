package plugins

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// file is the content of one file of a volume.
type file struct {
	data []byte
	mode int32  // permission bits
	user *int64 // owner; nil: root
}

// payload is the content of a whole volume: files by their paths, relative to
// the volume's directory.
type payload map[string]file

const (
	maxPath     = 4096
	maxFileName = 255
)

// clean checks all paths and modes, and returns the payload under clean ones.
func (p payload) clean() (payload, error) {
	out := make(payload, len(p))
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if err := checkPath(name); err != nil {
			return nil, err
		}
		if mode := p[name].mode; mode < 0 || mode > 0o777 { // the API server lets none in, a manifest might
			return nil, fmt.Errorf("invalid mode: must be a number between 0 and 0777 (octal), both inclusive: %s has %#o", name, mode)
		}
		out[path.Clean(name)] = p[name]
	}
	if err := out.checkTree(); err != nil {
		return nil, err
	}
	return out, nil
}

// checkPath refuses paths that could lead out of the volume or into what the
// agent keeps in it. The texts are the stock kubelet's.
func checkPath(name string) error {
	if name == "" {
		return fmt.Errorf("invalid path: must not be empty: %q", name)
	}
	if path.IsAbs(name) {
		return fmt.Errorf("invalid path: must be relative path: %s", name)
	}
	if len(name) > maxPath {
		return fmt.Errorf("invalid path: must be less than or equal to %d characters", maxPath)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return fmt.Errorf("invalid path: must not contain '..': %s", name)
		}
		if len(part) > maxFileName {
			return fmt.Errorf("invalid path: filenames must be less than or equal to %d characters", maxFileName)
		}
	}
	if strings.HasPrefix(path.Clean(name), "..") {
		return fmt.Errorf("invalid path: must not start with '..': %s", name)
	}
	if strings.ContainsRune(name, 0) || path.Clean(name) == "." {
		return fmt.Errorf("invalid path: names no file: %q", name)
	}
	return nil
}

// checkTree refuses a file where another one needs a directory.
func (p payload) checkTree() error {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, taken := p[dir]; taken {
				return fmt.Errorf("invalid path: %s is a file, and %s is below it", dir, name)
			}
		}
	}
	return nil
}

// top are the names that stand in the volume's own directory, sorted.
func (p payload) top() []string {
	seen := map[string]bool{}
	for name := range p {
		first, _, _ := strings.Cut(name, "/")
		seen[first] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// owner is who owns the files in a directory: the first user by name of file.
func (p payload) topUser(top string) *int64 {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if first, _, _ := strings.Cut(name, "/"); first == top {
			return p[name].user
		}
	}
	return nil
}

// aggregate is several errors in one, in the stock kubelet's form.
type aggregate []error

// joined is nil for none, and the error itself for one.
func joined(errs []error) error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return aggregate(errs)
}

func (a aggregate) Error() string {
	var texts []string
	for _, err := range a {
		if !slices.Contains(texts, err.Error()) {
			texts = append(texts, err.Error())
		}
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func (a aggregate) Unwrap() []error { return a }
