package stats

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/volume"
)

// Volumes finds volumes. It is what a [volume.Manager] does.
type Volumes interface {
	// Place says where a volume of the pod is mounted; false: it is not. It may
	// block for as long as a mount hangs, whatever ctx says.
	Place(ctx context.Context, pod *corev1.Pod, volumeName string) (volume.Place, bool, error)
}

// Manager measures the volumes of the pods that it follows. Use [New].
type Manager struct {
	cfg     Config
	volumes Volumes
	host    host
	log     *slog.Logger
	wake    chan struct{} // holds one token while there is news for Run

	mu    sync.Mutex
	pods  map[string]map[string]*entry // by UID and the volume's name
	queue queue
	lanes map[string]chan struct{} // by kind of volume
	walks chan struct{}
}

// entry is one volume. The manager's lock is held for all of it.
type entry struct {
	pod     *corev1.Pod
	name    string
	next    time.Time // when to measure it; in the queue
	at      int       // place in the queue; -1: not there
	busy    bool      // a call is in flight, given up or not
	soon    bool      // it was mounted while a call was in flight
	failing bool      // the last call failed, and that was told
	gone    bool      // nobody wants to know any more
	last    *Stats    // nil: it was not measured yet
}

// New checks the configuration. Nothing is measured before Run.
func New(cfg Config, volumes Volumes, log *slog.Logger) (*Manager, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.filled()
	return &Manager{
		cfg: cfg, volumes: volumes, host: host{walk: cfg.Walk, quotas: cfg.Quotas}, log: log,
		wake: make(chan struct{}, 1), pods: map[string]map[string]*entry{},
		lanes: map[string]chan struct{}{}, walks: make(chan struct{}, cfg.Walk.Width),
	}, nil
}

// firstSpread is how far the first measurements of a pod's volumes are apart:
// its start is not the time for them.
const firstSpread = 5 * time.Second

// Follow tells of a pod, or of its newest spec and metadata. The call for a pod
// that did not change costs nothing.
func (m *Manager) Follow(pod *corev1.Pod) {
	if m.cfg.Off() || len(pod.Spec.Volumes) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	uid := string(pod.UID)
	known := m.pods[uid]
	if known == nil {
		known = map[string]*entry{}
		m.pods[uid] = known
	}
	for _, v := range pod.Spec.Volumes {
		e := known[v.Name]
		if e != nil {
			e.pod = pod
			continue
		}
		if v.HostPath != nil || v.Image != nil {
			continue
		}
		e = &entry{pod: pod, name: v.Name, at: -1}
		known[v.Name] = e
		m.schedule(e, rand.N(min(firstSpread, m.pace())))
	}
}

// pace is the shortest period of any volume, as far as one can tell.
func (m *Manager) pace() time.Duration {
	pace := m.cfg.Period
	for _, p := range m.cfg.Periods {
		if p > 0 && (pace <= 0 || p < pace) {
			pace = p
		}
	}
	return pace
}

// Mounted says that a volume of a pod was mounted just now: it is measured soon.
// Unknown ones are fine.
func (m *Manager) Mounted(uid, volumeName string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.pods[uid][volumeName]
	switch {
	case e == nil:
	case e.busy:
		e.soon = true
	default:
		m.schedule(e, rand.N(min(firstSpread, m.pace())))
	}
}

// Forget drops a pod.
func (m *Manager) Forget(uid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.pods[uid] {
		e.gone = true
		m.queue.remove(e)
	}
	delete(m.pods, uid)
}

// Snapshot are the last figures of a pod's volumes that were measured, by name.
// What they point to is shared: read only.
func (m *Manager) Snapshot(uid string) []Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return figures(m.pods[uid])
}

// All are the last figures of all volumes, by pod and name.
func (m *Manager) All() []Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Stats
	for _, uid := range slices.Sorted(maps.Keys(m.pods)) {
		all = append(all, figures(m.pods[uid])...)
	}
	return all
}

func figures(volumes map[string]*entry) []Stats {
	var out []Stats
	for _, e := range volumes {
		if e.last != nil {
			out = append(out, *e.last)
		}
	}
	slices.SortFunc(out, func(a, b Stats) int { return strings.Compare(a.Volume, b.Volume) })
	return out
}

// schedule has the volume measured after wait. The lock is held.
func (m *Manager) schedule(e *entry, wait time.Duration) {
	e.next = time.Now().Add(wait)
	m.queue.put(e)
	select {
	case m.wake <- struct{}{}:
	default:
	}
}
