package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"nodekit.dev/node"
	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/logs"
)

// RemovingFiles is an engine that, with a container, also removes its files on
// the host: the log with all that was rotated from it, the link to the log, and
// the termination message. Otherwise a container that crashes over and over
// fills the disk for as long as its pod lives. The configuration is a complete
// one.
func RemovingFiles(e node.Engine, cfg Config) node.Engine {
	return removingFiles{
		Engine: e, log: cfg.Log,
		rootDir: cfg.RootDir, podLogsDir: cfg.PodLogsDir, linksDir: cfg.Host.LogLinksDir,
	}
}

type removingFiles struct {
	node.Engine
	log                           *slog.Logger
	rootDir, podLogsDir, linksDir string
}

// Remove removes the files first: while the container is there, an agent that
// was killed in between comes back here. Files that can not be removed keep
// nobody from removing the container, whose name the next start may need.
func (r removingFiles) Remove(ctx context.Context, req node.RemoveRequest) error {
	if c := req.Container; c.ID != "" {
		if err := errors.Join(r.removeLogs(c), r.removeLink(c), r.removeTerminationLog(c)); err != nil {
			r.log.Warn("files of a removed container are left", "uid", c.Labels[runtime.LabelPodUID],
				"container", c.Name, "containerID", c.ID, "err", err)
		}
	}
	return r.Engine.Remove(ctx, req)
}

func (r removingFiles) removeLogs(c runtime.Container) error {
	if c.LogPath == "" {
		return nil
	}
	if !strings.HasPrefix(filepath.Clean(c.LogPath), r.podLogsDir+"/") {
		return fmt.Errorf("log %s: not below %s, so not the agent's to remove", c.LogPath, r.podLogsDir)
	}
	files, err := logs.Files(c.LogPath)
	errs := []error{err}
	for _, file := range files {
		errs = append(errs, ignoreMissing(os.Remove(file)))
	}
	return errors.Join(errs...)
}

func (r removingFiles) removeLink(c runtime.Container) error {
	if r.linksDir == "" {
		return nil
	}
	link := linkName(c.Labels[runtime.LabelPodNamespace], c.Labels[runtime.LabelPodName], c.Name, c.ID)
	return ignoreMissing(os.Remove(filepath.Join(r.linksDir, filepath.Base(link))))
}

// removeTerminationLog knows the files that this agent made; those of a stock
// kubelet have names that nobody can tell, and go with the pod's directory.
func (r removingFiles) removeTerminationLog(c runtime.Container) error {
	uid := c.Labels[runtime.LabelPodUID]
	if podactor.CheckUID(uid) != nil || c.Name != filepath.Base(c.Name) {
		return nil // names no agent gave
	}
	return ignoreMissing(os.Remove(podactor.TerminationLogPath(r.rootDir, uid, c.Name, c.Attempt)))
}
