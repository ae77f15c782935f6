package cgroups

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// PodUIDs lists, sorted, the UIDs of pods that have a cgroup where cfg puts
// them, in any hierarchy: an agent that was killed may have made a cgroup of
// which nothing else tells.
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
				uid, isPod := strings.CutPrefix(filepath.Base(dir), strings.TrimSuffix(path.Base(example), exampleUID))
				if isPod && checkUID(uid) == nil {
					uids = append(uids, uid)
				}
			}
		}
	}
	slices.Sort(uids)
	return slices.Compact(uids), errors.Join(errs...)
}

// exampleUID stands for any UID in a path that shows where UIDs stand: at the
// end, with the one driver that Validate lets through.
const exampleUID = "EXAMPLE"
