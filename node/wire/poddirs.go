package wire

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"nodekit.dev/node"
)

// PodDirs finds the pod directories below rootDir: the stock layout pods/UID.
func PodDirs(rootDir string) node.PodDirLister { return podDirs{filepath.Join(rootDir, "pods")} }

type podDirs struct{ dir string }

// ListPodDirs lists the UIDs that have a directory; none where there is no
// pods directory yet.
func (p podDirs) ListPodDirs(context.Context) ([]string, error) {
	entries, err := os.ReadDir(p.dir)
	if err := ignoreMissing(err); err != nil {
		return nil, fmt.Errorf("pod directories: %w", err)
	}
	var uids []string
	for _, e := range entries {
		if e.IsDir() {
			uids = append(uids, e.Name())
		}
	}
	return uids, nil
}
