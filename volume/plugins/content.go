package plugins

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/beneath"
	"nodekit.dev/volume"
)

// content is a volume that the agent writes: on the disk, or in memory. The
// plugins that take their files from objects differ only in where these come
// from.
type content struct {
	memory Memory // nil: on the disk
	size   func(*corev1.Pod) int64
}

// collected is what a volume should hold, and when to look again although
// nothing changed; zero: never.
type collected struct {
	files     payload
	refreshAt time.Time
}

// mount makes the volume hold what collect returns. A volume that is mounted
// keeps its old content when that fails.
func (c content) mount(req volume.MountRequest, collect func() (collected, error)) (volume.MountResult, error) {
	result := volume.MountResult{HostPath: req.Dir}
	got, err := collect()
	if err != nil {
		return result, err
	}
	result.RefreshAt = got.refreshAt
	files, err := got.files.clean()
	if err != nil {
		return result, err
	}
	group := fsGroup(req.Pod)
	if err := c.prepare(req, group); err != nil {
		return result, err
	}
	root, err := os.OpenRoot(req.Dir)
	if err != nil {
		return result, err
	}
	defer func() { _ = root.Close() }() // a handle: closing can not lose anything
	w := writer{root: root, group: group}
	if err := w.mountPoints(req.Volume.Name, req.Pod); err != nil {
		return result, err
	}
	_, err = w.write(files)
	return result, err
}

// prepare makes the directory, and mounts a tmpfs on it. One that was prepared
// before is left as it is.
func (c content) prepare(req volume.MountRequest, group *int64) error {
	ready, err := c.ready(req.Dir)
	if ready || err != nil {
		return err
	}
	if c.memory == nil {
		return makeDir(req.Dir, emptyDirMode, group)
	}
	if err := os.MkdirAll(req.Dir, parentMode); err != nil {
		return err
	}
	if err := ensureTmpfs(c.memory, req.Dir, c.size(req.Pod)); err != nil {
		return err
	}
	open, err := openDir(req.Dir)
	if err != nil {
		return err
	}
	defer open.Close()
	return chmodDir(open, emptyDirMode|fs.ModeSticky, group)
}

// ready says whether a version was published in the directory.
func (c content) ready(dir string) (bool, error) {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if c.memory != nil {
		if mounted, err := isMountPoint(dir); err != nil || !mounted {
			return false, err
		}
	}
	target, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil || filepath.Base(target) != target {
		return false, nil //nolint:nilerr // no such link: not ready
	}
	info, err = os.Lstat(filepath.Join(dir, target))
	return err == nil && info.IsDir(), nil
}

// mounted is the same for all of these plugins: their content follows objects,
// and containers can not write to it.
func (c content) mounted(req volume.MountedRequest) (volume.MountedResult, error) {
	ready, err := c.ready(req.Dir)
	return volume.MountedResult{Mounted: ready, HostPath: req.Dir, ReadOnly: true, Follows: true}, err
}

// unmount takes the tmpfs off and removes the directory.
func (c content) unmount(ctx context.Context, req volume.UnmountRequest) error {
	if c.memory != nil {
		if err := unmountTmpfs(c.memory, req.Dir, req.Mounts); err != nil {
			return err
		}
	} else if len(req.Mounts) > 0 {
		return &beneath.MountError{Path: req.Mounts[0]}
	}
	return volume.RemoveDir(ctx, req.Dir)
}
