package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/beneath"
)

// resolveSubPath gives the path below the volume that a container asks for;
// empty: the volume itself.
func resolveSubPath(vm corev1.VolumeMount, expand func(string) (string, error)) (string, error) {
	path := vm.SubPath
	if vm.SubPathExpr != "" {
		if expand == nil {
			return "", fmt.Errorf("subPathExpr %q: nothing to expand it with", vm.SubPathExpr)
		}
		var err error
		if path, err = expand(vm.SubPathExpr); err != nil {
			return "", fmt.Errorf("subPathExpr %q: %w", vm.SubPathExpr, err)
		}
	}
	if filepath.IsAbs(path) {
		return "", fmt.Errorf("subPath %q must not be an absolute path", path)
	}
	if slices.Contains(strings.Split(path, "/"), "..") {
		return "", fmt.Errorf("subPath %q must not contain '..'", path)
	}
	return path, nil
}

// prepareSubPath opens subPath below the volume, made with the volume's own
// mode where it is missing, and bind-mounts it on target. The open file is
// what is mounted: whatever the containers do to the path meanwhile changes
// nothing. It returns target.
func (m *Manager) prepareSubPath(ctx context.Context, volumeDir, subPath, target string) (string, error) {
	root, err := beneath.OpenDir(volumeDir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(root.Fd()), &st); err != nil {
		return "", &fs.PathError{Op: "stat", Path: volumeDir, Err: err}
	}
	source, err := beneath.OpenOrMkdir(root, subPath, st.Mode&0o7777)
	if err != nil {
		return "", err
	}
	defer source.Close()
	if err := m.bindOnce(ctx, source, target); err != nil {
		return "", err
	}
	return target, nil
}

// bindOnce mounts source on target unless just that is mounted there already.
func (m *Manager) bindOnce(ctx context.Context, source *os.File, target string) error {
	mounts, err := m.mountPoints(target)
	if err != nil {
		return err
	}
	if len(mounts) == 1 && sameFile(source, target) {
		return nil
	}
	// An earlier start may have left another file there, or a half-made target.
	if err := m.unmountAll(target); err != nil {
		return err
	}
	if err := beneath.RemoveAll(ctx, target); err != nil {
		return err
	}
	if err := makeTarget(source, target); err != nil {
		return err
	}
	if err := m.mounter.Bind(source, target); err != nil {
		return err
	}
	if !sameFile(source, target) {
		return errors.Join(fmt.Errorf("%s does not show %s after the mount", target, source.Name()), m.unmountAll(target))
	}
	return nil
}

// makeTarget makes an empty directory or file, whatever source is.
func makeTarget(source *os.File, target string) error {
	if err := os.MkdirAll(filepath.Dir(target), dirMode); err != nil {
		return err
	}
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.Mkdir(target, dirMode)
	}
	file, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	return file.Close()
}

func sameFile(source *os.File, path string) bool {
	a, err1 := source.Stat()
	b, err2 := os.Lstat(path)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

// removeSubPaths unmounts the subPaths of a volume and removes their mount points.
func (m *Manager) removeSubPaths(ctx context.Context, uid, volume string) error {
	dir := m.layout.subPaths(uid, volume)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := m.unmountAll(dir); err != nil {
		return err
	}
	return beneath.RemoveAll(ctx, dir)
}
