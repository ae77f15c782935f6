package probemetrics

import (
	"cmp"
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
	// measured are the UIDs of the pods whose durations are in series of that
	// name, which have no UID: pods of one workload share them, and a pod may come
	// back under its name before the old one is forgotten.
	measured map[name]map[string]bool
}

// name is what tells the series of durations of one container from others'.
type name struct{ namespace, workload, container string }

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
		measured: map[name]map[string]bool{},
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
	key := name{t.Namespace, cmp.Or(t.Workload, t.Pod), t.Container}
	m.total.WithLabelValues(string(t.Type), word(result), t.Container, key.workload, t.Namespace, t.UID).Inc()
	if result == probe.Failure {
		return // as stock: it is often the timeout, which says nothing of the container
	}
	m.seconds.WithLabelValues(string(t.Type), t.Container, key.workload, t.Namespace).Observe(c.Took.Seconds())
	if m.measured[key] == nil {
		m.measured[key] = map[string]bool{}
	}
	m.measured[key][t.UID] = true
}

func (m *Metrics) forgotten(c probe.Container) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := name{c.Namespace, cmp.Or(c.Workload, c.Pod), c.Name}
	delete(m.measured[key], c.UID)
	last := len(m.measured[key]) == 0
	if last {
		delete(m.measured, key)
	}
	for _, t := range []probe.Type{probe.Liveness, probe.Readiness, probe.Startup} {
		if last {
			m.seconds.DeleteLabelValues(string(t), c.Name, key.workload, c.Namespace)
		}
		for _, r := range []probe.Result{probe.Success, probe.Failure, probe.Unknown} {
			m.total.DeleteLabelValues(string(t), word(r), c.Name, key.workload, c.Namespace, c.UID)
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
