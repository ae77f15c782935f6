package plugins

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/beneath"
	"nodekit.dev/volume"
)

// EmptyDir gives emptyDir volumes of the default medium: a directory on the
// disk of the agent's root directory, removed with the pod.
//
// The directory has mode 0777; with an fsGroup it belongs to that group and
// has the setgid bit, so that what is made in it does too. SELinux labels are
// not set. sizeLimit is not a matter of mounting: eviction holds it.
type EmptyDir struct{}

const (
	// readyFile in MetaDir says that the directory is complete, as it does for
	// the stock kubelet.
	readyFile    = "ready"
	emptyDirMode = 0o777
	parentMode   = 0o750
)

// Name implements [volume.Plugin].
func (EmptyDir) Name() string { return "kubernetes.io/empty-dir" }

// Supports implements [volume.Plugin].
func (EmptyDir) Supports(s volume.Source) bool {
	return s.Volume.EmptyDir != nil && s.Volume.EmptyDir.Medium == corev1.StorageMediumDefault
}

// Mount makes the directory. One that is complete is left as it is, whatever
// the containers made of it.
func (p EmptyDir) Mount(_ context.Context, req volume.MountRequest) (volume.MountResult, error) {
	result := volume.MountResult{HostPath: req.Dir}
	if ready, err := isReady(req.Dir, req.MetaDir); ready || err != nil {
		return result, err
	}
	// A ready file without its directory is from a removal that was cut short.
	if err := removeReady(req.MetaDir); err != nil {
		return result, err
	}
	if err := makeDir(req.Dir, fsGroup(req.Pod)); err != nil {
		return result, err
	}
	if err := os.MkdirAll(req.MetaDir, parentMode); err != nil {
		return result, err
	}
	return result, os.WriteFile(filepath.Join(req.MetaDir, readyFile), nil, parentMode)
}

// Mounted implements [volume.Plugin].
func (EmptyDir) Mounted(_ context.Context, req volume.MountedRequest) (volume.MountedResult, error) {
	ready, err := isReady(req.Dir, req.MetaDir)
	return volume.MountedResult{Mounted: ready, HostPath: req.Dir}, err
}

// Unmount removes the directory with all that is in it, unless something is
// mounted there: a container with Bidirectional propagation may leave a mount
// behind, and its data is not the pod's to delete.
func (EmptyDir) Unmount(ctx context.Context, req volume.UnmountRequest) error {
	if len(req.Mounts) > 0 {
		return &beneath.MountError{Path: req.Mounts[0]}
	}
	if err := removeReady(req.MetaDir); err != nil {
		return err
	}
	return volume.RemoveDir(ctx, req.Dir)
}

func isReady(dir, metaDir string) (bool, error) {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = os.Lstat(filepath.Join(metaDir, readyFile))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return false, nil
	}
	return err == nil, err
}

func removeReady(metaDir string) error {
	err := os.Remove(filepath.Join(metaDir, readyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// makeDir makes dir, or finishes one that an interrupted call made. Mode and
// group are set on the open directory, after the umask had its say.
func makeDir(dir string, group *int64) error {
	if err := os.MkdirAll(filepath.Dir(dir), parentMode); err != nil {
		return err
	}
	if err := os.Mkdir(dir, parentMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	open, err := openDir(dir)
	if err != nil {
		return err
	}
	defer open.Close()
	return chmodDir(open, emptyDirMode, group)
}

// openDir opens a directory, never through a symlink.
func openDir(dir string) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
}

// chmodDir sets the mode, and where there is a group, gives the directory and
// all that will be made in it to that.
func chmodDir(dir *os.File, mode fs.FileMode, group *int64) error {
	if group != nil {
		if err := dir.Chown(-1, int(*group)); err != nil {
			return err
		}
		mode |= fs.ModeSetgid
	}
	return dir.Chmod(mode) // after Chown, which takes the setgid bit away
}

func fsGroup(pod *corev1.Pod) *int64 {
	if pod.Spec.SecurityContext == nil {
		return nil
	}
	return pod.Spec.SecurityContext.FSGroup
}
