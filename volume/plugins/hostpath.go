package plugins

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/beneath"
	"nodekit.dev/volume"
)

// HostPath gives hostPath volumes, of pods and PersistentVolumes: a path of the host as it is, after a check
// or creation as its type says. Nothing is noted and nothing taken away
// afterwards; what it created stays, as the stock kubelet's does.
type HostPath struct{}

// Name implements [volume.Plugin].
func (HostPath) Name() string { return "kubernetes.io/host-path" }

// Supports implements [volume.Plugin].
func (HostPath) Supports(s volume.Source) bool { return hostPathSource(s) != nil }

func hostPathSource(s volume.Source) *corev1.HostPathVolumeSource {
	if s.PersistentVolume != nil {
		return s.PersistentVolume.Spec.HostPath
	}
	return s.Volume.HostPath
}

// Mount checks the path against its type, following symlinks. Without a type
// it does not look: the path may appear later, and a network file system
// whose server is away can not hang it.
func (HostPath) Mount(_ context.Context, req volume.MountRequest) (volume.MountResult, error) {
	source := hostPathSource(req.Source)
	path := source.Path
	if slices.Contains(strings.Split(path, "/"), "..") {
		return volume.MountResult{}, fmt.Errorf("invalid HostPath `%s`: must not contain '..'", path)
	}
	kind := corev1.HostPathUnset
	if source.Type != nil {
		kind = *source.Type
	}
	return volume.MountResult{HostPath: path}, checkHostPath(path, kind)
}

// Mounted always says yes: the path needs no work.
func (HostPath) Mounted(_ context.Context, req volume.MountedRequest) (volume.MountedResult, error) {
	source := hostPathSource(req.Source)
	if source == nil {
		return volume.MountedResult{}, nil
	}
	return volume.MountedResult{Mounted: true, HostPath: source.Path, ReadOnly: req.ReadOnly, KeepLabels: true}, nil
}

// Unmount has nothing to take away but an empty directory that another agent
// may have made.
func (HostPath) Unmount(ctx context.Context, req volume.UnmountRequest) error {
	if len(req.Mounts) > 0 {
		return &beneath.MountError{Path: req.Mounts[0]} // not ours
	}
	return volume.RemoveDir(ctx, req.Dir)
}

// hostPathRule is what a type asks of a path.
type hostPathRule struct {
	want func(fs.FileMode) bool
	noun string // as in "hostPath type check failed: /x is not a ..."
	// create makes the path when it is missing; nil: it must be there.
	create func(path string) error
}

func rule(kind corev1.HostPathType) (hostPathRule, bool) {
	switch kind {
	case corev1.HostPathDirectory:
		return hostPathRule{want: fs.FileMode.IsDir, noun: "directory"}, true
	case corev1.HostPathDirectoryOrCreate:
		return hostPathRule{want: fs.FileMode.IsDir, noun: "directory", create: createDir}, true
	case corev1.HostPathFile:
		return hostPathRule{want: fs.FileMode.IsRegular, noun: "file"}, true
	case corev1.HostPathFileOrCreate:
		return hostPathRule{want: fs.FileMode.IsRegular, noun: "file", create: createFile}, true
	case corev1.HostPathSocket:
		return hostPathRule{want: isKind(fs.ModeSocket), noun: "socket file"}, true
	case corev1.HostPathCharDev:
		return hostPathRule{want: isKind(fs.ModeDevice | fs.ModeCharDevice), noun: "character device"}, true
	case corev1.HostPathBlockDev:
		return hostPathRule{want: isKind(fs.ModeDevice), noun: "block device"}, true
	}
	return hostPathRule{}, false
}

func checkHostPath(path string, kind corev1.HostPathType) error {
	if kind == corev1.HostPathUnset {
		return nil
	}
	r, known := rule(kind)
	if !known {
		return fmt.Errorf("%s is an invalid volume type", kind)
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && r.create != nil {
		if err := r.create(path); err != nil {
			return err
		}
		info, err = os.Stat(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || !r.want(info.Mode()) {
		return fmt.Errorf("hostPath type check failed: %s is not a %s", path, r.noun)
	}
	return nil
}

func isKind(kind fs.FileMode) func(fs.FileMode) bool {
	return func(mode fs.FileMode) bool { return mode.Type() == kind }
}

// createDir makes the directory with its parents.
func createDir(path string) error { return os.MkdirAll(path, 0o755) }

// createFile makes an empty file; its directory must be there.
func createFile(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return file.Close()
}
