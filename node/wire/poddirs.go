package wire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"nodekit.dev/node"
	"nodekit.dev/resources/cgroups"
)

// PodDirs finds what an agent that was killed may have left of pods that the
// runtime does not know: directories, in the stock layout pods/UID, and, where
// the agent makes them, cgroups.
func PodDirs(cfg Config) node.PodDirLister { return podDirs{cfg} }

type podDirs struct{ cfg Config }

// ListPodDirs lists the UIDs that have a directory or a cgroup, some twice.
func (p podDirs) ListPodDirs(context.Context) ([]string, error) {
	uids, err := dirsIn(filepath.Join(p.cfg.RootDir, "pods"))
	if !p.cfg.Host.PodCgroups {
		return uids, err
	}
	more, cgroupErr := cgroups.PodUIDs(p.cfg.Cgroups)
	return append(uids, more...), errors.Join(err, cgroupErr)
}

// dirsIn lists the directories by name; none where there is no dir yet.
func dirsIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err := ignoreMissing(err); err != nil {
		return nil, fmt.Errorf("pod directories: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
