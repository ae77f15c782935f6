package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/beneath"
	"nodekit.dev/internal/reasoned"
)

// Unmount takes one volume of the pod away, with the bind mounts of its
// subPaths, also when the pod's spec is gone. No container may use it any
// more. Idempotent: a volume that is not there is fine. It blocks until the
// plugin is done, ctx at the latest.
func (m *Manager) Unmount(ctx context.Context, uid, volumeName string) error {
	if err := errors.Join(checkName("pod UID", uid), checkName("volume", volumeName)); err != nil {
		return reasoned.New(reasonUnmount, err).Final()
	}
	s := Source{Volume: corev1.Volume{Name: volumeName}}
	record, ok, err := m.readClaim(uid, volumeName)
	if ok {
		s = record.source(s.Volume)
	}
	var release func()
	if err == nil {
		release, err = m.locks.takeFor(ctx, uid, s)
	}
	if err != nil {
		return unmountError(fmt.Errorf("UnmountVolume.TearDown failed for volume %q of pod %s: %w", volumeName, uid, err))
	}
	defer release()
	if err := m.unmount(ctx, uid, s); err != nil {
		return unmountError(fmt.Errorf("UnmountVolume.TearDown failed for volume %q of pod %s: %w", volumeName, uid, err))
	}
	m.unlabel(uid, volumeName)
	m.ledger.unmounted(volumeID{uid, volumeName})
	m.upkeep.unmounted(volumeID{uid, volumeName})
	return nil
}

func (m *Manager) unmount(ctx context.Context, uid string, s Source) error {
	name := s.Volume.Name
	if err := m.removeSubPaths(ctx, uid, name); err != nil {
		return err
	}
	found, err := m.onDisk(uid)
	if err != nil {
		return err
	}
	done := map[diskVolume]bool{} // a volume may be there twice: whole, and on its way out
	for _, v := range found.of(name) {
		v.deleting = false
		if done[v] {
			continue
		}
		done[v] = true
		if err := m.unmountOne(ctx, uid, v, s); err != nil {
			return err
		}
		if err := beneath.RemoveAll(ctx, m.layout.meta(uid, v.plugin, v.name)); err != nil {
			return err
		}
		m.log.DebugContext(ctx, "volume unmounted", "uid", uid, "volume", name, "plugin", v.plugin)
	}
	if err := m.settled(uid, name); err != nil {
		return err
	}
	return m.removeClaim(uid, name)
}

func (m *Manager) unmountOne(ctx context.Context, uid string, v diskVolume, s Source) error {
	dir := m.layout.disk(uid, v)
	mounts, err := m.mountPoints(dir)
	if err != nil {
		return err
	}
	plugin := m.plugin(v.plugin)
	if plugin == nil {
		return m.counted(m.removeForeign(ctx, uid, v, mounts))
	}
	return m.operate(ctx, Operation{Kind: opUnmount, Plugin: v.plugin, UID: uid, Volume: v.name}, s, func() error {
		return plugin.Unmount(ctx, UnmountRequest{
			UID:     uid,
			Volume:  v.name,
			Dir:     dir,
			Block:   v.block,
			MetaDir: m.layout.meta(uid, v.plugin, v.name),
			Mounts:  mounts,
		})
	})
}

// counted counts the removal of a volume whose plugin is not here.
func (m *Manager) counted(err error) error {
	if err != nil {
		m.ledger.count(func(f *Found) *uint64 { return &f.CleanFailed })
	} else {
		m.ledger.count(func(f *Found) *uint64 { return &f.Cleaned })
	}
	return err
}

// removeForeign takes away the directory of a plugin that this agent does not
// have (left by another version, or by the stock kubelet). Mounts in it are
// that plugin's affair.
func (m *Manager) removeForeign(ctx context.Context, uid string, v diskVolume, mounts []string) error {
	if len(mounts) > 0 {
		return fmt.Errorf("no volume plugin %q to unmount %s: %w", v.plugin, v.name, &beneath.MountError{Path: mounts[0]})
	}
	m.log.WarnContext(ctx, "removing the directory of a volume whose plugin is not here",
		"uid", uid, "volume", v.name, "plugin", v.plugin)
	return RemoveDir(ctx, m.layout.disk(uid, v))
}

// RemovePodDir removes all directories of the pod. What an interrupted mount
// or unmount left is undone first. A mount that stays is an error that names
// it and answers RetryAfter; what is mounted stays untouched. Unknown UIDs are fine.
func (m *Manager) RemovePodDir(ctx context.Context, uid string) error {
	if err := checkName("pod UID", uid); err != nil {
		return reasoned.New(reasonUnmount, err).Final()
	}
	m.upkeep.forget(uid)
	m.ledger.forget(uid)
	dir := m.layout.pod(uid)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	found, err := m.onDisk(uid)
	if err != nil {
		return unmountError(fmt.Errorf("directories of pod %s: %w", uid, err))
	}
	var failed []error
	for _, name := range found.names() {
		if err := m.Unmount(ctx, uid, name); err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		return unmountError(errors.Join(failed...))
	}
	if mounts, err := m.mountPoints(dir); err != nil || len(mounts) > 0 {
		if err == nil {
			err = &beneath.MountError{Path: mounts[0]}
		}
		return unmountError(fmt.Errorf("directories of pod %s: %w", uid, err))
	}
	if err := beneath.RemoveAll(ctx, dir); err != nil {
		return unmountError(fmt.Errorf("directories of pod %s: %w", uid, err))
	}
	return nil
}

// unmountError asks to try again later where a mount is in the way.
func unmountError(err error) error {
	var mount *beneath.MountError
	if errors.As(err, &mount) {
		return reasoned.New(reasonUnmount, err).After(reasoned.RetryAfter(err, mountedRetry))
	}
	return classed(reasonUnmount, err)
}

// RemoveDir takes a volume's directory away, for plugins that keep data in it.
// It is moved aside first, so that a crash never leaves a part of the data
// under the volume's name, and removed without following symlinks or crossing
// mounts. Idempotent; the call after a crash goes on where that one ended. A
// name that leaves no room for another beside it (a PersistentVolume's may) is
// removed where it is.
func RemoveDir(ctx context.Context, dir string) error {
	aside := dir + deletingSuffix
	if len(filepath.Base(aside)) > unix.NAME_MAX {
		return beneath.RemoveAll(ctx, dir)
	}
	if err := beneath.RemoveAll(ctx, aside); err != nil {
		return err
	}
	if err := os.Rename(dir, aside); errors.Is(err, unix.EBUSY) {
		return &beneath.MountError{Path: dir}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return beneath.RemoveAll(ctx, aside)
}
