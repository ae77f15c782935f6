package stats

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"nodekit.dev/volume"
)

// firstProject is where the IDs of projects begin, as the stock kubelet's.
const firstProject = 1048577

// Projects gives directories a project of their own, so that the file system
// knows at any time what they hold. It sets no limit, and keeps no record: a
// directory itself says which project it has, and the file system which ones are
// taken. Safe for concurrent use; the zero value is ready.
type Projects struct {
	mu   sync.Mutex
	next uint32 // where to look first
}

// Assign gives the empty directory a project, unless it has one. False: it can
// not, since the file system has no project quotas or since something is in
// the directory, which the project would miss.
func (p *Projects) Assign(path string) (bool, error) {
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false, err
	}
	defer dir.Close()
	if _, ok := ownProject(dir); ok {
		return true, nil
	}
	if _, err := projectQuota(dir, 0); err != nil {
		return false, nil //nolint:nilerr // no such quota here: the directory is walked
	}
	if _, err := dir.Readdirnames(1); !errors.Is(err, io.EOF) {
		return false, nil //nolint:nilerr // not empty, or not to be read
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = max(p.next, firstProject)
	for range maxProjects {
		project := p.next
		p.next++
		if ok, err := assign(dir, project); ok || err != nil {
			return ok, err
		}
	}
	return false, fmt.Errorf("%s: the first %d projects are all taken", path, maxProjects)
}

// maxProjects bounds the search for one that is free.
const maxProjects = 100_000

// assign gives the directory the project if nothing else has it: also a moment
// later, as another agent may have come to the same idea.
func assign(dir *os.File, project uint32) (bool, error) {
	taken, err := projectQuota(dir, project)
	if err != nil || taken.inodes > 0 {
		return false, err
	}
	a, err := attributesOf(dir)
	if err != nil {
		return false, err
	}
	a.project = project
	a.flags |= projectInherit
	if err := ioctl(dir, "set the project of", setAttributes, &a); err != nil {
		return false, err
	}
	now, err := projectQuota(dir, project)
	return err == nil && now.inodes <= 1, err
}

// Around is the plugin with a project for each volume of pods with a user
// namespace, given right after the mount. What goes wrong with that is logged:
// the volume is walked then.
func (p *Projects) Around(plugin volume.Plugin, log *slog.Logger) volume.Plugin {
	return withProjects{Plugin: plugin, projects: p, log: log}
}

type withProjects struct {
	volume.Plugin
	projects *Projects
	log      *slog.Logger
}

// Mount mounts, and gives the volume its project.
func (w withProjects) Mount(ctx context.Context, req volume.MountRequest) (volume.MountResult, error) {
	result, err := w.Plugin.Mount(ctx, req)
	if err != nil || !isolated(req.Pod) {
		return result, err
	}
	if own, err := ownFileSystem(result.HostPath); err != nil || own {
		return result, nil //nolint:nilerr // it is measured otherwise
	}
	if _, err := w.projects.Assign(result.HostPath); err != nil {
		w.log.WarnContext(ctx, "a volume has no project quota and is walked instead", "pod", req.Pod.Namespace+"/"+req.Pod.Name,
			"uid", string(req.Pod.UID), "volume", req.Volume.Name, "err", err)
	}
	return result, nil
}
