package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/ownership"
)

// When users are told that giving files to a group takes long.
const (
	ownershipSlow  = 30 * time.Second
	ownershipPause = time.Minute
)

// fsGroupOf is the group that the pod's securityContext gives its volumes to.
func fsGroupOf(pod *corev1.Pod, s Source) *FSGroup {
	sc := pod.Spec.SecurityContext
	if sc == nil || sc.FSGroup == nil || s.Block() || s.ReadOnly {
		return nil
	}
	group := &FSGroup{ID: *sc.FSGroup, Policy: corev1.FSGroupChangeAlways}
	if sc.FSGroupChangePolicy != nil {
		group.Policy = *sc.FSGroupChangePolicy
	}
	return group
}

// mountOwned has the plugin mount the volume and gives its files to the group,
// where the plugin leaves that to us. A note on the disk says meanwhile that the
// volume is not ready yet.
func (m *Manager) mountOwned(ctx context.Context, plugin Plugin, req MountRequest) (MountResult, error) {
	if req.FSGroup == nil {
		return plugin.Mount(ctx, req)
	}
	uid, name := string(req.Pod.UID), req.Volume.Name
	was, err := plugin.Mounted(ctx, m.mountedRequest(uid, req.Source, plugin))
	if err != nil {
		return MountResult{}, err
	}
	if was.Mounted && !m.owing(uid, name) {
		return plugin.Mount(ctx, req) // its containers may run: whose the files are is their matter now
	}
	if err := m.owe(uid, name); err != nil {
		return MountResult{}, err
	}
	result, err := plugin.Mount(ctx, req)
	if err == nil && result.SetOwner {
		err = m.giveFiles(ctx, req, result.HostPath)
	}
	if err == nil {
		err = m.settled(uid, name)
	}
	return result, err
}

// giveFiles gives the files of a volume to the group of the request.
func (m *Manager) giveFiles(ctx context.Context, req MountRequest, path string) error {
	var files atomic.Int64
	stop := m.tellSlow(req, path, &files)
	done, err := ownership.Give(ctx, path, ownership.Request{
		Group: req.FSGroup.ID, OnlyOnMismatch: req.FSGroup.Policy == corev1.FSGroupChangeOnRootMismatch, Files: &files,
	})
	stop()
	if err != nil {
		return fmt.Errorf("applyFSGroup failed: %w", err)
	}
	if done.Refused > 0 {
		m.log.WarnContext(ctx, "some files of a volume could not be given to the pod's group", "uid", string(req.Pod.UID),
			"volume", req.Volume.Name, "files", done.Files, "refused", done.Refused, "err", done.Refusal)
	}
	return nil
}

// tellSlow tells users while files are given away, from half a minute on.
func (m *Manager) tellSlow(req MountRequest, path string, files *atomic.Int64) (stop func()) {
	tell := m.observer.OwnershipSlow
	if tell == nil {
		return func() {}
	}
	shown := path
	if rel, err := filepath.Rel(m.layout.pods(), path); err == nil && filepath.IsLocal(rel) {
		shown = rel
	}
	message := fmt.Sprintf("Setting volume ownership for %s is taking longer than expected, consider using OnRootMismatch - https://kubernetes.io/docs/tasks/configure-pod-container/security-context/#configure-volume-permission-and-ownership-change-policy-for-pods", shown)
	told := false // only in say, which never runs twice at the same time
	var stopped atomic.Bool
	var timer atomic.Pointer[time.Timer]
	var say func()
	say = func() {
		if stopped.Load() {
			return
		}
		if told {
			message = fmt.Sprintf("Setting volume ownership for %s, processed %d files.", shown, files.Load())
		}
		told = true
		tell(req.Pod, message)
		timer.Store(time.AfterFunc(ownershipPause, say))
	}
	timer.Store(time.AfterFunc(ownershipSlow, say))
	return func() {
		stopped.Store(true)
		timer.Load().Stop()
	}
}

// owe notes that the files of a volume may still have to change hands.
func (m *Manager) owe(uid, volume string) error {
	note := m.layout.owing(uid, volume)
	if err := os.MkdirAll(filepath.Dir(note), dirMode); err != nil {
		return err
	}
	file, err := os.OpenFile(note, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

func (m *Manager) owing(uid, volume string) bool {
	_, err := os.Lstat(m.layout.owing(uid, volume))
	return !errors.Is(err, fs.ErrNotExist)
}

func (m *Manager) settled(uid, volume string) error {
	if err := os.Remove(m.layout.owing(uid, volume)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
