package apimetrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"nodekit.dev/metrics"
)

// Startup measures how a machine becomes a node of a cluster. As in the stock
// kubelet it tells only of a node that this agent created.
type Startup struct {
	preAgent, preRegistration, registration, postRegistration, whole prometheus.Gauge

	statusSync prometheus.Histogram

	mu   sync.Mutex
	seen moments
}

// moments are the steps; zero: not reached.
type moments struct {
	boot, start, attempt, registered, ready time.Time
}

// NewStartup makes the metrics. boot is when the machine started (zero: not
// known) and start when the agent did.
func NewStartup(boot, start time.Time) *Startup {
	gauge := func(name, help string) prometheus.Gauge {
		return metrics.NewGauge(metrics.Opts{Name: name, Help: help})
	}
	return &Startup{
		preAgent:         gauge("kubelet_node_startup_pre_kubelet_duration_seconds", "Time from the start of the machine to that of the agent, in seconds."),
		preRegistration:  gauge("kubelet_node_startup_pre_registration_duration_seconds", "Time from the start of the agent to its first try to register, in seconds."),
		registration:     gauge("kubelet_node_startup_registration_duration_seconds", "Time from the first try to register until the node was there, in seconds."),
		postRegistration: gauge("kubelet_node_startup_post_registration_duration_seconds", "Time from the registration until the node was ready, in seconds."),
		whole:            gauge("kubelet_node_startup_duration_seconds", "Time from the start of the machine until the node was ready, in seconds."),
		statusSync: metrics.NewHistogram(metrics.Opts{
			Name: "kubelet_pod_status_sync_duration_seconds", Help: "Time from a change of a pod's status until the API server has it, in seconds.",
			Buckets: []float64{0.010, 0.050, 0.100, 0.500, 1, 5, 10, 20, 30, 45, 60},
		}),
		seen: moments{boot: boot, start: start},
	}
}

// Collectors are the metrics, for a registry.
func (s *Startup) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.preAgent, s.preRegistration, s.registration, s.postRegistration, s.whole, s.statusSync}
}

// Registering is told of the first try to register.
func (s *Startup) Registering() {
	s.note(func(m *moments, now time.Time) { m.attempt = first(m.attempt, now) })
}

// Registered is told when the node is there, and whether this agent made it.
func (s *Startup) Registered(created bool) {
	if created {
		s.note(func(m *moments, now time.Time) { m.registered = first(m.registered, now) })
	}
}

// Ready is told when the API server first took the word that the node is ready.
func (s *Startup) Ready() {
	s.note(func(m *moments, now time.Time) { m.ready = first(m.ready, now) })
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.seen
	if m.attempt.IsZero() || m.registered.IsZero() {
		return // the node was there before
	}
	if !m.boot.IsZero() {
		s.preAgent.Set(m.start.Sub(m.boot).Seconds())
		s.whole.Set(m.ready.Sub(m.boot).Seconds())
	}
	s.preRegistration.Set(m.attempt.Sub(m.start).Seconds())
	s.registration.Set(m.registered.Sub(m.attempt).Seconds())
	s.postRegistration.Set(m.ready.Sub(m.registered).Seconds())
}

// StatusWritten measures a pod's status that reached the API server.
func (s *Startup) StatusWritten(took time.Duration) { s.statusSync.Observe(took.Seconds()) }

func (s *Startup) note(what func(*moments, time.Time)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what(&s.seen, time.Now())
}

func first(before, now time.Time) time.Time {
	if before.IsZero() {
		return now
	}
	return before
}
