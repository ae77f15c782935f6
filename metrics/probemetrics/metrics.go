package probemetrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"nodekit.dev/metrics"
	"nodekit.dev/probe"
)

// Metrics are those of one agent. Safe for concurrent use.
type Metrics struct {
	total   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	queued  *prometheus.HistogramVec

	mu sync.Mutex
	// last is the UID of the pod that was last measured under a name: the series
	// of durations have no UID, and a pod may come back under its name before the
	// old one is forgotten.
	last map[name]string
}

// name is what tells the series of durations of one container from others'.
type name struct{ namespace, pod, container string }

// New makes the metrics; Collectors registers them.
func New() *Metrics {
	return &Metrics{
		total: metrics.NewCounterVec(metrics.Opts{
			Name: "prober_probe_total", Help: "Checks of containers, by what the probe decides and by result.", Stability: metrics.Beta,
		}, "probe_type", "result", "container", "pod", "namespace", "pod_uid"),
		seconds: metrics.NewHistogramVec(metrics.Opts{
			Name: "prober_probe_duration_seconds", Help: "How long checks of containers took that did not fail, in seconds.",
		}, "probe_type", "container", "pod", "namespace"),
		queued: metrics.NewHistogramVec(metrics.Opts{
			Name: "nodekit_prober_queue_duration_seconds", Help: "How much later than due checks began, in seconds, by the kind of check.",
		}, "kind"),
		last: map[name]string{},
	}
}

// Collectors are the metrics, for a registry.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.total, m.seconds, m.queued}
}

// Observer measures the checks of one manager. The series of a container go
// when it is forgotten.
func (m *Metrics) Observer() probe.Observer {
	return probe.Observer{Checked: m.checked, Forgotten: m.forgotten}
}

func (m *Metrics) checked(c probe.Checked) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, result := c.Target, c.Outcome.Result
	m.queued.WithLabelValues(string(c.Kind)).Observe(c.Queued.Seconds())
	m.total.WithLabelValues(string(t.Type), word(result), t.Container, t.Pod, t.Namespace, t.UID).Inc()
	if result == probe.Failure {
		return // as stock: it is often the timeout, which says nothing of the container
	}
	m.seconds.WithLabelValues(string(t.Type), t.Container, t.Pod, t.Namespace).Observe(c.Took.Seconds())
	m.last[name{t.Namespace, t.Pod, t.Container}] = t.UID
}

func (m *Metrics) forgotten(c probe.Container) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := name{c.Namespace, c.Pod, c.Name}
	mine := m.last[key] == c.UID
	if mine {
		delete(m.last, key)
	}
	for _, t := range []probe.Type{probe.Liveness, probe.Readiness, probe.Startup} {
		if mine {
			m.seconds.DeleteLabelValues(string(t), c.Name, c.Pod, c.Namespace)
		}
		for _, r := range []probe.Result{probe.Success, probe.Failure, probe.Unknown} {
			m.total.DeleteLabelValues(string(t), word(r), c.Name, c.Pod, c.Namespace, c.UID)
		}
	}
}

// word is the stock label for a result.
func word(r probe.Result) string {
	switch r {
	case probe.Success, probe.Warning:
		return "successful"
	case probe.Failure:
		return "failed"
	case probe.Unknown:
	}
	return "unknown"
}
