package volume

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/reasoned"
)

// RefreshResult tells what became of the pod's volumes.
type RefreshResult struct {
	// Followed is how many of its mounted volumes follow objects.
	Followed int
	// Next is when to refresh although no object changed; zero: never.
	Next time.Time
}

// Refresh brings the content of the pod's mounted volumes up to date that
// follow objects; it mounts nothing that is not mounted. A volume whose objects
// can not be read keeps its content, and the error says why, in the words of a
// failed mount. Idempotent. [Manager.Run] calls it whenever there is a reason.
func (m *Manager) Refresh(ctx context.Context, pod *corev1.Pod) (RefreshResult, error) {
	var result RefreshResult
	var failed []error
	for _, v := range pod.Spec.Volumes {
		s, plugin, err := m.known(pod, v.Name)
		if err != nil {
			continue // nothing that could have mounted it
		}
		followed, err := m.refreshVolume(ctx, pod, s, plugin)
		if err != nil {
			failed = append(failed, mountError(v.Name, err))
		}
		if followed {
			result.Followed++
		}
	}
	result.Next = m.upkeep.nextOf(string(pod.UID))
	if len(failed) > 0 {
		return result, classed(reasonMount, errors.Join(failed...))
	}
	return result, nil
}

// refreshVolume mounts a volume again that is mounted and follows objects.
func (m *Manager) refreshVolume(ctx context.Context, pod *corev1.Pod, s Source, plugin Plugin) (followed bool, err error) {
	uid := string(pod.UID)
	release, err := m.locks.takeFor(ctx, uid, s)
	if err != nil {
		return false, err
	}
	defer release()
	where, err := plugin.Mounted(ctx, m.mountedRequest(uid, s, plugin))
	if err != nil || !where.Mounted || !where.Follows {
		return false, err
	}
	_, err = m.mountLocked(ctx, opRefresh, pod, s, plugin)
	return true, err
}

// mountLocked calls the plugin and remembers that it did. The lock of the
// volume is held.
func (m *Manager) mountLocked(ctx context.Context, kind string, pod *corev1.Pod, s Source, plugin Plugin) (MountResult, error) {
	id := volumeID{string(pod.UID), s.Volume.Name}
	req := MountRequest{
		Pod:     pod,
		Source:  s,
		Dir:     m.layout.place(id.uid, plugin.Name(), s),
		MetaDir: m.layout.meta(id.uid, plugin.Name(), s.Name()),
		FSGroup: fsGroupOf(pod, s),
	}
	var result MountResult
	err := m.operate(ctx, Operation{Kind: kind, Plugin: plugin.Name(), UID: id.uid, Volume: id.name}, s, func() (err error) {
		result, err = m.mountOwned(ctx, plugin, req)
		return err
	})
	m.upkeep.wrote(pod, id, result.RefreshAt, err == nil)
	return result, err
}

// firstRefreshTime bounds how long the start of a container waits for content
// that an earlier agent wrote to be brought up to date.
const firstRefreshTime = 3 * time.Second

// freshen is for what an earlier agent mounted: before a container starts with
// it, its content is brought up to date, once. Where that fails, the container
// starts with what there is.
func (m *Manager) freshen(ctx context.Context, pod *corev1.Pod, s Source, plugin Plugin) error {
	if m.upkeep.tried(volumeID{string(pod.UID), s.Volume.Name}) {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, firstRefreshTime)
	defer cancel()
	_, err := m.refreshVolume(limited, pod, s, plugin)
	if err != nil && ctx.Err() == nil {
		m.log.WarnContext(ctx, "a container starts with the content that an earlier agent left in a volume",
			"pod", pod.Namespace+"/"+pod.Name, "uid", string(pod.UID), "volume", s.Volume.Name, "err", err)
	}
	return ctx.Err()
}

func mountError(volume string, err error) error {
	return fmt.Errorf("MountVolume.SetUp failed for volume %q : %w", volume, err)
}

func (m *Manager) mountedRequest(uid string, s Source, plugin Plugin) MountedRequest {
	return MountedRequest{
		UID:     uid,
		Dir:     m.layout.place(uid, plugin.Name(), s),
		MetaDir: m.layout.meta(uid, plugin.Name(), s.Name()),
		Block:   s.Block(),
		Source:  s,
	}
}

// refreshFailed hands a failure out; for logs, one in a row.
func (m *Manager) refreshFailed(ctx context.Context, pod *corev1.Pod, inARow int, wait time.Duration, err error) {
	if m.observer.RefreshFailed != nil {
		m.observer.RefreshFailed(pod, err)
	}
	if inARow == 1 {
		m.log.WarnContext(ctx, "volumes keep their old content", "pod", pod.Namespace+"/"+pod.Name, "uid", string(pod.UID),
			"reason", reasoned.Reason(err, reasonMount), "retryIn", wait, "err", err)
	}
}
