// Package volumemetrics measures what the agent does with volumes.
//
//	m := volumemetrics.New()
//	err := registry.Add(m.Collectors()...)
//	volumeConfig.Observer = m.Observer() // Linux, as volumes are; elsewhere call Done
package volumemetrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"nodekit.dev/metrics"
)

// Metrics are those of one agent. Safe for concurrent use.
type Metrics struct {
	each, whole *prometheus.HistogramVec

	mu    sync.Mutex
	begun map[attempt]time.Time // first try of what has not worked yet
}

// attempt is one thing that is tried until it works.
type attempt struct{ kind, uid, volume string }

// buckets are the stock ones.
func buckets() []float64 {
	return []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600}
}

// New makes the metrics; Collectors registers them.
func New() *Metrics {
	return &Metrics{
		each: metrics.NewHistogramVec(metrics.Opts{
			Name: "storage_operation_duration_seconds", Stability: metrics.Beta, Buckets: buckets(),
			Help: "How long each try of an operation on a volume took, in seconds.",
		}, "volume_plugin", "operation_name", "status", "migrated"),
		whole: metrics.NewHistogramVec(metrics.Opts{
			Name: "volume_operation_total_seconds", Stability: metrics.Beta, Buckets: buckets(),
			Help: "Time from the first try of an operation on a volume until it worked, in seconds.",
		}, "plugin_name", "operation_name"),
		begun: map[attempt]time.Time{},
	}
}

// Collectors are the metrics, for a registry.
func (m *Metrics) Collectors() []prometheus.Collector { return []prometheus.Collector{m.each, m.whole} }

// Operation is one try of something on a volume.
type Operation struct {
	// Kind is "mount", "refresh" or "unmount".
	Kind string
	// Plugin is a name such as "kubernetes.io/empty-dir".
	Plugin string
	// UID is the pod's; Volume the name in its spec.
	UID, Volume string
	Took        time.Duration
	Err         error
}

// Done measures an operation that ended now.
func (m *Metrics) Done(op Operation) { m.done(op, time.Now()) }

func (m *Metrics) done(op Operation, now time.Time) {
	name, status := operationName(op.Kind), "success"
	if op.Err != nil {
		status = "fail-unknown"
	}
	m.each.WithLabelValues(op.Plugin, name, status, "false").Observe(op.Took.Seconds())
	if took, done := m.since(op, now); done {
		m.whole.WithLabelValues(op.Plugin, name).Observe(took.Seconds())
	}
}

// since is the time from the first try of what works now. A pod that goes
// forgets what it never got.
func (m *Metrics) since(op Operation, now time.Time) (time.Duration, bool) {
	key := attempt{op.Kind, op.UID, op.Volume}
	m.mu.Lock()
	defer m.mu.Unlock()
	first, known := m.begun[key]
	if !known {
		first = now.Add(-op.Took)
	}
	if op.Kind == unmount {
		delete(m.begun, attempt{"mount", op.UID, op.Volume})
		delete(m.begun, attempt{"refresh", op.UID, op.Volume})
	}
	if op.Err != nil {
		m.begun[key] = first
		return 0, false
	}
	delete(m.begun, key)
	return now.Sub(first), true
}

const unmount = "unmount"

// operationName is the stock label; writing new content is a mount there too.
func operationName(kind string) string {
	if kind == unmount {
		return "volume_unmount"
	}
	return "volume_mount"
}
