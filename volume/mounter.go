package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"nodekit.dev/internal/beneath"
)

// Mounter is what the manager asks of the kernel. Safe for concurrent use.
type Mounter interface {
	// Bind mounts the open file or directory on target, which exists and is of
	// the same kind. Mounts below source do not come along.
	Bind(source *os.File, target string) error
	// Unmount takes the topmost mount off target. ErrNotExist or EINVAL mean
	// that nothing is mounted there.
	Unmount(target string) error
	// MountPoints lists the mount points at and below dir, one entry for each
	// mount, deepest first. No symlink may be on the way to dir.
	MountPoints(dir string) ([]string, error)
}

// HostMounter is the Mounter of the mount namespace that the process is in.
type HostMounter struct{}

// Bind implements [Mounter].
func (HostMounter) Bind(source *os.File, target string) error {
	if err := unix.Mount(beneath.ProcPath(source), target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s on %s: %w", source.Name(), target, err)
	}
	return nil
}

// Unmount implements [Mounter].
func (HostMounter) Unmount(target string) error {
	if err := unix.Unmount(target, unix.UMOUNT_NOFOLLOW); err != nil {
		return &fs.PathError{Op: "unmount", Path: target, Err: err}
	}
	return nil
}

// MountPoints implements [Mounter]. It reads mountinfo once.
func (HostMounter) MountPoints(dir string) ([]string, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		return nil, fmt.Errorf("reading mountinfo: %w", err)
	}
	var points []string
	for _, mount := range mounts {
		if !strings.HasSuffix(mount.Mountpoint, "//deleted") { // no path leads there any more
			points = append(points, mount.Mountpoint)
		}
	}
	deepestFirst(points)
	return points, nil
}

func deepestFirst(paths []string) {
	slices.SortStableFunc(paths, func(a, b string) int {
		return strings.Count(b, "/") - strings.Count(a, "/")
	})
}

// mountPoints lists what is mounted at and below dir, a path below the root
// directory. Only the way to pods/ may hold symlinks: resolving more could
// hang on a mount whose server is gone.
func (m *Manager) mountPoints(dir string) ([]string, error) {
	pods := m.layout.pods()
	real, err := filepath.EvalSymlinks(pods)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	points, err := m.mounter.MountPoints(real + strings.TrimPrefix(dir, pods))
	for i, point := range points {
		points[i] = pods + strings.TrimPrefix(point, real)
	}
	return points, err
}

// unmountAll takes off whatever is mounted at and below dir.
func (m *Manager) unmountAll(dir string) error {
	points, err := m.mountPoints(dir)
	if err != nil {
		return err
	}
	for _, point := range points {
		err := m.mounter.Unmount(point)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
