package stats

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The metric_source of what this package measures itself, as the stock
// kubelet's.
const (
	sourceStatfs = "statfs"
	sourceWalk   = "du"
	sourceQuota  = "fsquota"
	sourceBlock  = "block"
)

// host measures what lies on this host.
type host struct {
	walk   Walk
	quotas bool
}

// method measures one volume. It may hang as long as a mount does.
type method func(context.Context) (Usage, error)

// choose says how to measure the volume. Without a method: by a walk, or, where
// the source is empty, not at all.
func (h host) choose(req ReadRequest) (source string, how method, err error) {
	path := req.Path
	if pv := req.PersistentVolume; pv != nil && pv.Spec.HostPath != nil {
		return "", nil, nil // what is there is not the pod's
	}
	if req.Block() {
		return sourceBlock, func(context.Context) (Usage, error) { return blockUsage(path) }, nil
	}
	own, err := ownFileSystem(path)
	switch {
	case err != nil:
		return sourceStatfs, nil, err
	case own || req.PersistentVolume != nil:
		return sourceStatfs, func(context.Context) (Usage, error) { return statfsUsage(path) }, nil
	case h.quotas && isolated(req.Pod):
		if usage, ok := quotaUsage(path); ok {
			return sourceQuota, func(context.Context) (Usage, error) { return usage, nil }, nil
		}
	}
	return sourceWalk, nil, nil
}

// ownFileSystem says whether a mount begins at the directory.
func ownFileSystem(path string) (bool, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &st)
	if err == nil && st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
	}
	var at, above unix.Stat_t // an older kernel
	if err := errors.Join(unix.Lstat(path, &at), unix.Lstat(filepath.Dir(path), &above)); err != nil {
		return false, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return at.Dev != above.Dev, nil
}

// statfsUsage asks the file system.
func statfsUsage(path string) (Usage, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return Usage{}, &fs.PathError{Op: "statfs", Path: path, Err: err}
	}
	return usageOf(&st), nil
}

func usageOf(st *unix.Statfs_t) Usage {
	unit := int64(st.Frsize)
	if unit == 0 {
		unit = int64(st.Bsize)
	}
	files, free := int64(st.Files), int64(st.Ffree)
	return Usage{
		Capacity: new(int64(st.Blocks) * unit), Available: new(int64(st.Bavail) * unit), Used: new(int64(st.Blocks-st.Bfree) * unit),
		Inodes: new(files), InodesFree: new(free), InodesUsed: new(files - free),
	}
}

// usageByWalk counts what is in the directory; the rest is its file system's.
func (h host) usageByWalk(ctx context.Context, path string) (Usage, error) {
	usage, err := statfsUsage(path)
	if err != nil {
		return Usage{}, err
	}
	counted, err := walk(ctx, path, h.walk)
	if err != nil {
		return Usage{}, err
	}
	usage.Used, usage.InodesUsed = &counted.bytes, &counted.inodes
	return usage, nil
}

// blockUsage is the size of a device.
func blockUsage(path string) (Usage, error) {
	device, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return Usage{}, err
	}
	defer device.Close()
	info, err := device.Stat()
	if err != nil {
		return Usage{}, err
	}
	if info.Mode()&fs.ModeDevice == 0 || info.Mode()&fs.ModeCharDevice != 0 {
		return Usage{}, fmt.Errorf("%s is no block device", path)
	}
	size, err := device.Seek(0, 2)
	if err != nil {
		return Usage{}, err
	}
	return Usage{Capacity: &size}, nil
}
