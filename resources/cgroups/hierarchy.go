package cgroups

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hierarchy is one tree of cgroups: the only one of v2, or one of several of v1.
type hierarchy struct {
	dir     string
	unified bool
	// controllers of v1 in this tree, such as cpu and cpuacct. For v2 they are
	// a matter of each cgroup.
	controllers []string
	// isSpare: the v2 tree beside those of v1, which runtimes do not use. Things
	// are removed there but not made.
	isSpare bool
}

func (h hierarchy) name() string {
	if h.unified {
		return "cgroup2"
	}
	return strings.Join(h.controllers, ",")
}

// hierarchies looks up what is mounted.
func hierarchies(mount string) ([]hierarchy, error) {
	if isFile(filepath.Join(mount, "cgroup.controllers")) {
		return []hierarchy{{dir: mount, unified: true}}, nil
	}
	entries, err := os.ReadDir(mount)
	if err != nil {
		return nil, fmt.Errorf("cgroups: %w", err)
	}
	var out []hierarchy
	for _, e := range entries {
		// Symbolic links lead to the same trees by other names.
		dir := filepath.Join(mount, e.Name())
		if !e.IsDir() || !isFile(filepath.Join(dir, "cgroup.procs")) {
			continue
		}
		if isFile(filepath.Join(dir, "cgroup.controllers")) {
			out = append(out, hierarchy{dir: dir, unified: true, isSpare: true})
			continue
		}
		out = append(out, hierarchy{dir: dir, controllers: strings.Split(e.Name(), ",")})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("cgroups: nothing is mounted below %s", mount)
	}
	return out, nil
}

// closedControllers are those that a v2 cgroup has but its children do not.
func (h hierarchy) closedControllers(dir string) ([]string, error) {
	if !h.unified {
		return nil, nil
	}
	have, err := readWords(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return nil, err
	}
	open, err := readWords(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(have, func(c string) bool { return slices.Contains(open, c) }), nil
}

// prepare fills what a fresh v1 cpuset lacks: without CPUs and memory nodes, no
// process can enter it or anything below.
func (h hierarchy) prepare(dir string) error {
	if h.unified || !slices.Contains(h.controllers, "cpuset") {
		return nil
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		own, err := readWords(filepath.Join(dir, file))
		if err != nil {
			return err
		}
		if len(own) > 0 {
			continue
		}
		above, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(dir, file), strings.TrimSpace(string(above))); err != nil {
			return err
		}
	}
	return nil
}

func readWords(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	return strings.Fields(string(text)), err
}

// writeFile writes to a file that the kernel made; it never makes one.
func writeFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func pathElements(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range strings.SplitSeq(path, "/") {
			if name != "" && !yield(name) {
				return
			}
		}
	}
}

// childDirs are the cgroups directly below; none where dir is gone.
func childDirs(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, err
}
