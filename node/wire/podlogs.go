package wire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"nodekit.dev/node"
)

// RemovingLogs is a mounter that also removes the pod's logs, with the links to
// them in linksDir, when it removes the pod's directories: then the pod is
// gone and nobody can ask for its logs any more. An empty linksDir has no links.
func RemovingLogs(m node.Mounter, podLogsDir, linksDir string) node.Mounter {
	return removingLogs{Mounter: m, podLogsDir: podLogsDir, linksDir: linksDir}
}

type removingLogs struct {
	node.Mounter
	podLogsDir, linksDir string
}

// RemovePodDir removes the pod's directories last: while they are there, an
// agent that was killed in between finds the pod again, and comes back here.
func (r removingLogs) RemovePodDir(ctx context.Context, uid string) error {
	dirs, err := filepath.Glob(podLogDir(r.podLogsDir, "*", "*", uid))
	if err != nil {
		return fmt.Errorf("pod logs: %w", err)
	}
	for _, dir := range dirs {
		if err := errors.Join(r.unlink(dir), os.RemoveAll(dir)); err != nil {
			return fmt.Errorf("pod logs: %w", err)
		}
	}
	return r.Mounter.RemovePodDir(ctx, uid)
}

// unlink removes the links that lead into a pod's log directory.
func (r removingLogs) unlink(dir string) error {
	if r.linksDir == "" {
		return nil
	}
	namespace, rest, _ := strings.Cut(filepath.Base(dir), "_")
	name, _, _ := strings.Cut(rest, "_")
	links, err := filepath.Glob(filepath.Join(r.linksDir, linkPrefix(namespace, name)+"*.log"))
	if err != nil {
		return err
	}
	var errs []error
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, dir+"/") {
			errs = append(errs, ignoreMissing(os.Remove(link)))
		}
	}
	return errors.Join(errs...)
}
