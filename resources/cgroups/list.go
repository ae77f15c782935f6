package cgroups

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
)

// PodUIDs lists, sorted, the UIDs of pods that have a cgroup where cfg puts
// them, in any hierarchy: an agent that was killed may have made a cgroup of
// which nothing else tells. A slice whose name does not tell one UID for sure is
// left out.
func PodUIDs(cfg Config) ([]string, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("cgroups: %w", err)
	}
	trees, err := hierarchies(cfg.Mount)
	if err != nil {
		return nil, err
	}
	var uids []string
	var errs []error
	for _, tree := range trees {
		for _, example := range cfg.Names.Candidates(exampleUID) {
			dirs, err := childDirs(filepath.Join(tree.dir, path.Dir(example)))
			errs = append(errs, err)
			for _, dir := range dirs {
				if uid, isPod := readUID(cfg.Names.Driver, filepath.Base(dir), path.Base(example)); isPod {
					uids = append(uids, uid)
				}
			}
		}
	}
	slices.Sort(uids)
	return slices.Compact(uids), errors.Join(errs...)
}

// exampleUID stands for any UID in a path that shows where UIDs stand.
const exampleUID = "EXAMPLE"
