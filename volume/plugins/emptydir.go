package plugins

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/beneath"
	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
)

// EmptyDir gives emptyDir volumes: a directory on the disk of the agent's root
// directory, removed with the pod, or a file system in memory or of huge pages.
//
// The directory has mode 0777, or what the volume asks for; with an fsGroup it
// belongs to that group and has the setgid bit, so that what is made in it does
// too. SELinux labels are not set. The kernel holds the sizeLimit of volumes in
// memory; that of others is not a matter of mounting: see [volume.OverLimit].
type EmptyDir struct {
	// Memory mounts volumes of the media Memory and HugePages; nil: [HostMemory].
	Memory Memory
	// MemorySize bounds what the volumes in memory of a pod may hold, besides
	// their sizeLimit, in bytes; nil or 0: half of the machine's memory.
	MemorySize func(*corev1.Pod) int64
	// Modes lets volumes ask for a mode (gate EmptyDirVolumeMode, Alpha); else
	// the field is ignored, as the stock kubelet does.
	Modes bool
}

const (
	// readyFile in MetaDir says that the directory is complete, as it does for
	// the stock kubelet. Ours holds the medium, the stock kubelet's nothing.
	readyFile    = "ready"
	diskMedium   = "Disk"
	emptyDirMode = 0o777
	parentMode   = 0o750
)

// Name implements [volume.Plugin].
func (EmptyDir) Name() string { return "kubernetes.io/empty-dir" }

// Supports implements [volume.Plugin].
func (EmptyDir) Supports(s volume.Source) bool { return s.Volume.EmptyDir != nil }

func (p EmptyDir) memory() Memory {
	if p.Memory == nil {
		return HostMemory{}
	}
	return p.Memory
}

// Mount makes the directory. One that is complete is left as it is, whatever
// the containers made of it.
func (p EmptyDir) Mount(ctx context.Context, req volume.MountRequest) (volume.MountResult, error) {
	result := volume.MountResult{HostPath: req.Dir}
	where, err := p.Mounted(ctx, volume.MountedRequest{Source: req.Source, Dir: req.Dir, MetaDir: req.MetaDir})
	if where.Mounted || err != nil {
		return result, err
	}
	// A ready file without its directory is from a removal that was cut short,
	// and one without its mount from before the machine started.
	if err := removeReady(req.MetaDir); err != nil {
		return result, err
	}
	if err := os.MkdirAll(req.Dir, parentMode); err != nil {
		return result, err
	}
	medium := mediumOf(req.Source)
	if err := p.mountMedium(medium, req); err != nil {
		return result, err
	}
	if err := makeDir(req.Dir, p.mode(req.Source), fsGroup(req.Pod)); err != nil {
		return result, err
	}
	if err := os.MkdirAll(req.MetaDir, parentMode); err != nil {
		return result, err
	}
	return result, os.WriteFile(filepath.Join(req.MetaDir, readyFile), []byte(medium), parentMode)
}

// mediumOf is what a ready file says; empty for a volume that is only known by
// its name.
func mediumOf(s volume.Source) string {
	switch {
	case s.Volume.EmptyDir == nil:
		return ""
	case s.Volume.EmptyDir.Medium == corev1.StorageMediumDefault:
		return diskMedium
	}
	return string(s.Volume.EmptyDir.Medium)
}

func (p EmptyDir) mountMedium(medium string, req volume.MountRequest) error {
	limit := int64(0)
	if q := req.Volume.EmptyDir.SizeLimit; q != nil {
		limit = q.Value()
	}
	switch {
	case medium == diskMedium:
		return nil
	case medium == string(corev1.StorageMediumMemory):
		if p.MemorySize != nil {
			limit = lower(limit, p.MemorySize(req.Pod))
		}
		return ensureTmpfs(p.memory(), req.Dir, limit)
	case strings.HasPrefix(medium, string(corev1.StorageMediumHugePages)):
		size, err := pageSize(corev1.StorageMedium(medium), req.Pod)
		if err != nil {
			return err
		}
		return ensureHugetlbfs(p.memory(), req.Dir, size, limit)
	}
	return reasoned.New("FailedMount", fmt.Errorf("unknown storage medium %q", medium)).Final()
}

// lower is the lower of two limits, where 0 is none.
func lower(a, b int64) int64 {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// mode is that of the directory.
func (p EmptyDir) mode(s volume.Source) fs.FileMode {
	asked := s.Volume.EmptyDir.Mode
	if !p.Modes || asked == nil {
		return emptyDirMode
	}
	mode := fs.FileMode(*asked) & fs.ModePerm //nolint:gosec // the API allows 0 to 01777
	if *asked&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}

// Mounted implements [volume.Plugin].
func (EmptyDir) Mounted(_ context.Context, req volume.MountedRequest) (volume.MountedResult, error) {
	result := volume.MountedResult{HostPath: req.Dir}
	ready, err := isReady(req.Dir, req.MetaDir)
	if !ready || err != nil {
		return result, err
	}
	medium, err := readyMedium(req.MetaDir)
	if err != nil {
		return result, err
	}
	if medium == "" { // the stock kubelet's
		medium = mediumOf(req.Source)
	}
	if result.Mounted = medium == "" || medium == diskMedium; result.Mounted {
		return result, nil
	}
	result.Mounted, err = isMountPoint(req.Dir)
	return result, err
}

// readyMedium is what the ready file says; empty: nothing, or there is none.
func readyMedium(metaDir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(metaDir, readyFile))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return "", nil
	}
	return string(text), err
}

// Unmount removes the directory with all that is in it, unless something is
// mounted there that is not its own: a container with Bidirectional propagation
// may leave a mount behind, and its data is not the pod's to delete.
func (p EmptyDir) Unmount(ctx context.Context, req volume.UnmountRequest) error {
	medium, err := readyMedium(req.MetaDir)
	if err != nil {
		return err
	}
	if len(req.Mounts) > 0 && (medium == diskMedium || !inMemory(req.Dir)) {
		return &beneath.MountError{Path: req.Mounts[0]}
	}
	if err := unmountTmpfs(p.memory(), req.Dir, req.Mounts); err != nil {
		return err
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
func makeDir(dir string, mode fs.FileMode, group *int64) error {
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
	return chmodDir(open, mode, group)
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
		mode |= fs.ModeSetgid | 0o770
	}
	return dir.Chmod(mode) // after Chown, which takes the setgid bit away
}

func fsGroup(pod *corev1.Pod) *int64 {
	if pod.Spec.SecurityContext == nil {
		return nil
	}
	return pod.Spec.SecurityContext.FSGroup
}
