package testbed

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// cgroupMount is where both versions of cgroups are mounted: version 2 there,
// the hierarchies of version 1 one below.
const cgroupMount = "/sys/fs/cgroup"

// makeCgroup makes the cgroup that an agent is told to work below, in every
// hierarchy. Like the stock kubelet, agents want it to exist.
func makeCgroup(name string) error {
	for _, hierarchy := range hierarchies() {
		dir := filepath.Join(hierarchy, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		// In cpuset v1 a new group may use nothing until it is told what.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			allowed, err := os.ReadFile(filepath.Join(hierarchy, file))
			if err != nil {
				continue // not cpuset, or version 2, which inherits
			}
			if err := os.WriteFile(filepath.Join(dir, file), allowed, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

func hierarchies() []string {
	if _, err := os.Stat(filepath.Join(cgroupMount, "cgroup.controllers")); err == nil {
		return []string{cgroupMount}
	}
	dirs, _ := filepath.Glob(cgroupMount + "/*/cgroup.procs")
	for i, file := range dirs {
		dirs[i] = filepath.Dir(file)
	}
	return dirs
}

// removeCgroups removes the cgroups with these names, in every hierarchy, with
// all below them.
func removeCgroups(ctx context.Context, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	// The kernel frees a cgroup a moment after its last process has ended.
	return Eventually(ctx, 20*time.Millisecond, func(context.Context) error {
		var errs []error
		for _, dir := range slices.Backward(cgroupsBelow(names)) {
			if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	})
}

// cgroupsBelow lists the cgroups with these names and all below, parents first.
func cgroupsBelow(names []string) []string {
	var found []string
	_ = filepath.WalkDir(cgroupMount, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // a cgroup may vanish while we walk
		}
		for elem := range strings.SplitSeq(path, "/") {
			if slices.Contains(names, elem) {
				found = append(found, path)
				break
			}
		}
		return nil
	})
	return found
}
