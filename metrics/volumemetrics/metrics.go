package volumemetrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"nodekit.dev/metrics"
)

// Config says where the metrics get what they do not observe. Each function may
// be nil, is called whenever the metrics are shown, and must not block.
type Config struct {
	// Claims are the figures of volumes that claims are bound to. Several pods may
	// use one: it shows once.
	Claims func() []Claim
	// Census counts volumes.
	Census func() Census
	// Backends are the conditions that CSI drivers report of what is behind them.
	Backends func() []Backend
}

// Metrics are those of one agent. Safe for concurrent use.
type Metrics struct {
	each, whole, calls, measuring *prometheus.HistogramVec
	shown                         *shown
	labels                        *labels
}

// buckets are the stock ones.
func buckets() []float64 {
	return []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600}
}

// New makes the metrics; Collectors registers them.
func New(cfg Config) *Metrics {
	return &Metrics{
		each: metrics.NewHistogramVec(metrics.Opts{
			Name: "storage_operation_duration_seconds", Stability: metrics.Beta, Buckets: buckets(),
			Help: "How long each try of an operation on a volume took, in seconds.",
		}, "volume_plugin", "operation_name", "status", "migrated"),
		whole: metrics.NewHistogramVec(metrics.Opts{
			Name: "volume_operation_total_seconds", Stability: metrics.Beta, Buckets: buckets(),
			Help: "Time from when a pod first wanted a volume until it was mounted, in seconds.",
		}, "plugin_name", "operation_name"),
		calls: metrics.NewHistogramVec(metrics.Opts{
			Name: "csi_operations_seconds", Buckets: buckets(),
			Help: "How long calls of CSI drivers took, in seconds, by method and gRPC status.",
		}, "driver_name", "method_name", "grpc_status_code", "migrated"),
		measuring: metrics.NewHistogramVec(metrics.Opts{
			Name: "kubelet_volume_metric_collection_duration_seconds",
			Help: "How long it took to measure one volume, in seconds, by what was asked.",
		}, "metric_source"),
		shown:  newShown(cfg),
		labels: newLabels(),
	}
}

// Collectors are the metrics, for a registry.
func (m *Metrics) Collectors() []prometheus.Collector {
	return append([]prometheus.Collector{m.each, m.whole, m.calls, m.measuring, m.shown}, m.labels.all()...)
}

// Operation is one try of something on a volume.
type Operation struct {
	// Kind is "mount", "refresh" or "unmount"; others are shown as they are.
	Kind string
	// Plugin is a name such as "kubernetes.io/empty-dir"; of CSI,
	// "kubernetes.io/csi:DRIVER".
	Plugin string
	// Block says that it is a device, not a file system.
	Block bool
	Took  time.Duration
	// Whole is, for a mount that worked, the time since the pod wanted it.
	Whole time.Duration
	Err   error
}

// Done measures an operation that ended.
func (m *Metrics) Done(op Operation) {
	status := "success"
	if op.Err != nil {
		status = "fail-unknown"
	}
	m.each.WithLabelValues(op.Plugin, op.name(), status, "false").Observe(op.Took.Seconds())
	if op.mounts() && !op.Block && op.Err == nil {
		m.whole.WithLabelValues(op.Plugin, "overall_volume_mount").Observe(op.Whole.Seconds())
	}
}

// mounts: writing new content is a mount with the stock kubelet, too.
func (op Operation) mounts() bool { return op.Kind == "mount" || op.Kind == "refresh" }

// name is the stock label.
func (op Operation) name() string {
	switch {
	case op.mounts() && op.Block:
		return "map_volume"
	case op.mounts():
		return "volume_mount"
	case op.Kind == "unmount" && op.Block:
		return "unmap_volume"
	case op.Kind == "unmount":
		return "volume_unmount"
	}
	return op.Kind
}

// Called measures a call of a CSI driver; code is that of gRPC, such as "OK", and
// migrated says that an in-tree volume is served by it.
func (m *Metrics) Called(driver, method, code string, migrated bool, took time.Duration) {
	text := "false"
	if migrated {
		text = "true"
	}
	m.calls.WithLabelValues(driver, method, code, text).Observe(took.Seconds())
}

// Measured measures what it took to measure a volume: source is "statfs", "du",
// "fsquota", "block" or the CSI driver's name.
func (m *Metrics) Measured(source string, took time.Duration) {
	m.measuring.WithLabelValues(source).Observe(took.Seconds())
}
