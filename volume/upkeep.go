package volume

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/backoff"
	"nodekit.dev/internal/tasks"
)

// upkeep remembers which pods have content to look after, and when. It is safe
// to lose: [Manager.Follow] brings the pods back after a restart.
type upkeep struct {
	wake chan struct{} // holds one token while ready has pods

	mu     sync.Mutex
	pods   map[string]*kept
	ready  []string // UIDs to refresh now, oldest first
	closed bool     // nobody refreshes any more
}

// kept is one pod.
type kept struct {
	pod      *corev1.Pod
	ready    bool // it is in upkeep.ready
	busy     bool // it is being refreshed
	again    bool // there was news while it was
	failures backoff.State
	timer    *time.Timer // nil: no time is set
	volumes  map[string]keptVolume
}

// keptVolume is one volume that was written, or at least tried, since start.
type keptVolume struct{ refreshAt time.Time }

// refreshRetry is how failures of one pod slow down. News of an object, or of
// the pod, do not wait for it.
func refreshRetry() backoff.Policy {
	return backoff.Policy{Base: time.Second, Max: 2 * time.Minute}
}

// refreshWidth is how many pods are refreshed at the same time.
const refreshWidth = 4

func newUpkeep() *upkeep {
	return &upkeep{wake: make(chan struct{}, 1), pods: map[string]*kept{}}
}

func (u *upkeep) kept(uid string) *kept {
	k := u.pods[uid]
	if k == nil {
		k = &kept{volumes: map[string]keptVolume{}}
		u.pods[uid] = k
	}
	return k
}

// follow takes in a pod; one that is new, or whose metadata or spec changed, is
// refreshed.
func (u *upkeep) follow(pod *corev1.Pod) {
	if len(pod.Spec.Volumes) == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	k := u.kept(string(pod.UID))
	if k.pod == pod {
		return
	}
	k.pod = pod
	u.soon(string(pod.UID), k)
}

// changed has the pod refreshed, if it is known.
func (u *upkeep) changed(uid string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if k := u.pods[uid]; k != nil {
		u.soon(uid, k)
	}
}

// soon puts a pod in line. The lock is held.
func (u *upkeep) soon(uid string, k *kept) {
	switch {
	case k.ready || u.closed:
		return
	case k.busy:
		k.again = true
		return
	}
	k.ready = true
	u.ready = append(u.ready, uid)
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// take returns the pod that waited longest; nil: none does.
func (u *upkeep) take() *corev1.Pod {
	u.mu.Lock()
	defer u.mu.Unlock()
	for len(u.ready) > 0 {
		uid := u.ready[0]
		u.ready = u.ready[1:]
		k := u.pods[uid]
		if k == nil || !k.ready {
			continue
		}
		k.ready = false
		k.busy, k.again = true, false
		return k.pod
	}
	u.ready = nil
	return nil
}

// done notes how a refresh ended and sets the next one. It returns how many
// failed in a row, and the wait.
func (u *upkeep) done(pod *corev1.Pod, err error, now time.Time) (inARow int, wait time.Duration) {
	uid := string(pod.UID)
	u.mu.Lock()
	defer u.mu.Unlock()
	k := u.pods[uid]
	if k == nil {
		return 0, 0 // unmounted meanwhile
	}
	k.busy = false
	if err == nil {
		k.failures = backoff.State{}
	} else {
		k.failures = k.failures.Fail(refreshRetry(), now, err.Error())
		wait = k.failures.Delay
	}
	if k.again {
		u.soon(uid, k)
	}
	u.alarm(uid, k, now, wait)
	return k.failures.Failures, wait
}

// alarm sets the timer to the end of wait, or to when a volume asked for. The
// lock is held.
func (u *upkeep) alarm(uid string, k *kept, now time.Time, wait time.Duration) {
	if k.timer != nil {
		k.timer.Stop()
		k.timer = nil
	}
	if wait == 0 {
		at := k.next()
		if at.IsZero() {
			return
		}
		// A volume that asks for a time that is over is not asked in a tight loop.
		wait = max(at.Sub(now), refreshRetry().Base)
	}
	if u.closed {
		return
	}
	k.timer = time.AfterFunc(wait+rand.N(wait/20+1), func() { u.changed(uid) })
}

func (k *kept) next() (first time.Time) {
	for _, v := range k.volumes {
		if first.IsZero() || !v.refreshAt.IsZero() && v.refreshAt.Before(first) {
			first = v.refreshAt
		}
	}
	return first
}

// followed are the pods that are known.
func (u *upkeep) followed() (pods []*corev1.Pod) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, k := range u.pods {
		if k.pod != nil {
			pods = append(pods, k.pod)
		}
	}
	return pods
}

func (u *upkeep) nextOf(uid string) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if k := u.pods[uid]; k != nil {
		return k.next()
	}
	return time.Time{}
}

// wrote notes that a volume of the pod was mounted, or tried to, and when it
// wants to be again. After a failure the time that was known before stays.
func (u *upkeep) wrote(pod *corev1.Pod, id volumeID, refreshAt time.Time, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	k := u.kept(id.uid)
	if k.pod == nil {
		k.pod = pod
	}
	v := k.volumes[id.name]
	if ok {
		v.refreshAt = refreshAt
	}
	k.volumes[id.name] = v
	if !k.busy && !refreshAt.IsZero() && k.failures.Failures == 0 {
		u.alarm(id.uid, k, time.Now(), 0)
	}
}

func (u *upkeep) tried(id volumeID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	k := u.pods[id.uid]
	if k == nil {
		return false
	}
	_, tried := k.volumes[id.name]
	return tried
}

// unmounted forgets a volume, and with the last one the pod.
func (u *upkeep) unmounted(id volumeID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if k := u.pods[id.uid]; k != nil {
		if delete(k.volumes, id.name); len(k.volumes) == 0 {
			u.drop(id.uid, k)
		}
	}
}

func (u *upkeep) forget(uid string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if k := u.pods[uid]; k != nil {
		u.drop(uid, k)
	}
}

func (u *upkeep) drop(uid string, k *kept) {
	if k.timer != nil {
		k.timer.Stop()
	}
	delete(u.pods, uid)
}

func (u *upkeep) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for _, k := range u.pods {
		if k.timer != nil {
			k.timer.Stop()
			k.timer = nil
		}
	}
}

// Follow tells of a pod, or of its newest spec and metadata: from then on
// [Manager.Run] keeps the content of its mounted volumes up to date. It never
// blocks; the call for a pod that did not change costs nothing. A pod is
// forgotten when its last volume is unmounted.
func (m *Manager) Follow(pod *corev1.Pod) { m.upkeep.follow(pod) }

// Changed says that an object changed which the pod of that UID refers to. It
// never blocks; unknown UIDs are fine.
func (m *Manager) Changed(uid string) { m.upkeep.changed(uid) }

// Run keeps the content of volumes up to date until ctx ends, and returns its
// error: after [Manager.Changed], when [Manager.Follow] brought something new,
// and when a volume asked for it. What fails is tried again. Without it,
// volumes keep what they were mounted with.
func (m *Manager) Run(ctx context.Context) error {
	group := tasks.New(ctx)
	slots := make(chan struct{}, refreshWidth)
	err := m.refreshAll(group, slots)
	m.upkeep.close()
	group.Stop()
	return errors.Join(err, group.Wait())
}

func (m *Manager) refreshAll(group *tasks.Group, slots chan struct{}) error {
	ctx := group.Context()
	for {
		pod := m.upkeep.take()
		if pod == nil {
			select {
			case <-m.upkeep.wake:
				continue
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		group.Go("volume-refresh", func(ctx context.Context) error {
			defer func() { <-slots }()
			m.refreshPod(ctx, pod)
			return nil
		})
	}
}

// refreshTime bounds the refresh of one pod.
const refreshTime = 2 * time.Minute

func (m *Manager) refreshPod(ctx context.Context, pod *corev1.Pod) {
	limited, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	_, err := m.Refresh(limited, pod)
	if ctx.Err() != nil {
		return
	}
	if inARow, wait := m.upkeep.done(pod, err, time.Now()); err != nil && inARow > 0 {
		m.refreshFailed(ctx, pod, inARow, wait, err)
	}
}
