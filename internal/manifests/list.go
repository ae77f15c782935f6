package manifests

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// List lists the files of a directory that may be manifests, sorted. A
// path that does not exist has none; that of a file is that file.
func List(path string) ([]string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		if _, linkErr := os.Lstat(path); linkErr == nil {
			// A link whose target is away, such as a disk that is not mounted
			// yet: a slip, not a wish to have no pods.
			return nil, fmt.Errorf("%s: the link leads nowhere: %w", path, err)
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if name := filepath.Join(path, e.Name()); !temporary(e.Name()) && !isDir(name) {
			out = append(out, name)
		}
	}
	return out, nil
}

// temporary says that a name is not a manifest's but of a hidden or
// half-written file of an editor or tool.
func temporary(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") ||
		strings.HasSuffix(name, ".swp") || strings.HasSuffix(name, ".swx") || strings.HasPrefix(name, "#")
}

// Dangling says that a name is there, as a link to what is not: perhaps not yet.
func Dangling(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
