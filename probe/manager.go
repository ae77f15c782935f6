package probe

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"nodekit.dev/internal/tasks"
)

// Manager makes the probes of all containers. Its methods may be called at any
// time, before Run and after it too, never block, and are safe for concurrent
// use. Use [New].
type Manager struct {
	cfg     Config
	states  *mailbox
	changes chan struct{}
	wake    chan struct{} // the timeline begins earlier than before

	mu       sync.Mutex
	pods     map[string]*podRuns // by UID
	restored map[string]map[Type]Tally
	timeline timeline
	queues   []*queue
	turn     uint64
	workers  int
	news     []news
	telling  bool
	began    time.Time // Run
	group    *tasks.Group
}

// podRuns are the containers of one pod.
type podRuns struct {
	stopping bool
	runs     map[string]*run
}

// New checks the configuration. Nothing runs before Run does.
func New(cfg Config) (*Manager, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m := &Manager{
		cfg: cfg.withDefaults(), states: newMailbox(),
		changes: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		pods: map[string]*podRuns{}, restored: map[string]map[Type]Tally{},
	}
	m.Restore(cfg.Restored)
	for kind, check := range cfg.Checks {
		m.queues = append(m.queues, &queue{kind: kind, check: check, limit: m.cfg.limit(kind)})
	}
	slices.SortFunc(m.queues, func(a, b *queue) int { return cmp.Compare(a.kind, b.kind) })
	return m, nil
}

// Restore is Config.Restored for results that are read later. It does nothing
// for containers that are watched already.
func (m *Manager) Restore(saved []Saved) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range saved {
		if s.ContainerID != "" && !m.watches(s.ContainerID) {
			m.restored[s.ContainerID] = s.Probes
		}
	}
}

func (m *Manager) watches(id string) bool {
	for _, pod := range m.pods {
		for _, r := range pod.runs {
			if r.c.ID == id {
				return true
			}
		}
	}
	return false
}

// States gives the first state of each run that is watched, and each change. A
// reader that is slow holds nobody up, and misses what was replaced meanwhile.
// All readers share one channel, which is closed when Run ends.
func (m *Manager) States() <-chan State { return m.states.out }

// Watch begins to probe one run of a container, or takes over what changed of
// it: a probe whose Spec is another one starts over. A run with another ID
// takes the place of the one before. The state is what counts from now on. An
// error names the field that is wrong; then nothing has changed.
func (m *Manager) Watch(c Container) (State, error) {
	if err := m.validate(&c); err != nil {
		return State{}, fmt.Errorf("container %s of pod %s/%s: %w", c.Name, c.Namespace, c.Pod, err)
	}
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	pod := m.pods[c.UID]
	if pod == nil {
		pod = &podRuns{runs: map[string]*run{}}
		m.pods[c.UID] = pod
	}
	r := pod.runs[c.Name]
	if r != nil && (r.c.ID != c.ID || r.rests()) {
		m.end(r)
		r = nil
	}
	if r == nil {
		r = &run{began: began(c.StartedAt, now), stopping: pod.stopping}
		pod.runs[c.Name] = r
	}
	m.update(r, c, now)
	return r.state(), nil
}

func (m *Manager) validate(c *Container) error {
	var errs []error
	for _, t := range types() {
		spec := c.spec(t)
		if spec == nil {
			continue
		}
		if err := spec.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("%s probe: %w", t, err))
		} else if m.queueOf(spec.kind()) == nil {
			errs = append(errs, fmt.Errorf("%s probe: there is no check of kind %q", t, spec.kind()))
		}
	}
	return errors.Join(errs...)
}

func (m *Manager) queueOf(kind Kind) *queue {
	for _, q := range m.queues {
		if q.kind == kind {
			return q
		}
	}
	return nil
}

// Forget ends the probes of a container. A check that runs is cancelled, and
// its result dropped.
func (m *Manager) Forget(uid, name string) {
	m.mu.Lock()
	if pod := m.pods[uid]; pod != nil {
		m.forget(pod, name)
		if len(pod.runs) == 0 && !pod.stopping {
			delete(m.pods, uid)
		}
	}
	m.mu.Unlock()
	m.tell()
}

// ForgetPod is Forget for all containers of a pod; it also forgets Stopping.
func (m *Manager) ForgetPod(uid string) {
	m.mu.Lock()
	if pod := m.pods[uid]; pod != nil {
		for name := range pod.runs {
			m.forget(pod, name)
		}
		delete(m.pods, uid)
	}
	m.mu.Unlock()
	m.tell()
}

// Rest ends the checks of a container whose run ended or is about to, and says
// nothing of it any more, until the next Watch; that one begins a run anew.
func (m *Manager) Rest(uid, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	pod := m.pods[uid]
	if pod == nil || pod.runs[name] == nil {
		return
	}
	r := pod.runs[name]
	m.end(r)
	m.states.drop(r.key())
	c := r.c
	c.ID, c.Liveness, c.Readiness, c.Startup = "", nil, nil, nil
	pod.runs[name] = &run{c: c, stopping: pod.stopping}
}

func (m *Manager) forget(pod *podRuns, name string) {
	r := pod.runs[name]
	if r == nil {
		return
	}
	m.end(r)
	delete(pod.runs, name)
	m.states.drop(r.key())
	if len(m.cfg.Observers) > 0 {
		m.news = append(m.news, news{forgotten: &r.c})
	}
}

// Stopping ends the liveness and startup probes of a pod that is being
// stopped, those of containers that are watched later too: from now on none is
// Unhealthy. Readiness is checked on. It holds until ForgetPod.
func (m *Manager) Stopping(uid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	pod := m.pods[uid]
	if pod == nil {
		pod = &podRuns{runs: map[string]*run{}}
		m.pods[uid] = pod
	}
	pod.stopping = true
	for _, r := range pod.runs {
		r.stopping = true
		for _, p := range r.probes {
			if p != nil && p.typ != Readiness {
				m.stop(p)
			}
		}
		m.publish(r)
	}
}
