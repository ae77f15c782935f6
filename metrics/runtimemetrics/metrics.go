package runtimemetrics

import (
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"

	"nodekit.dev/metrics"
	"nodekit.dev/runtime/images"
	"nodekit.dev/runtime/observe"
)

// Metrics are those of one agent. Safe for concurrent use.
type Metrics struct {
	calls, callErrors *prometheus.CounterVec
	callSeconds       *prometheus.HistogramVec
	sandboxSeconds    *prometheus.HistogramVec
	sandboxErrors     *prometheus.CounterVec
	pullSeconds       *prometheus.HistogramVec

	relistSeconds, relistInterval, lookSeconds prometheus.Histogram
	lastRelist                                 prometheus.Gauge
	streams, streamErrors                      prometheus.Counter

	relisted atomic.Int64 // when the last relist ended, in Unix nanoseconds
}

// New makes the metrics; Collectors registers them.
func New() *Metrics {
	m := &Metrics{
		calls: metrics.NewCounterVec(metrics.Opts{
			Name: "kubelet_runtime_operations_total", Help: "Calls of the container runtime.",
		}, "operation_type"),
		callErrors: metrics.NewCounterVec(metrics.Opts{
			Name: "kubelet_runtime_operations_errors_total", Help: "Calls of the container runtime that failed.",
		}, "operation_type"),
		callSeconds: metrics.NewHistogramVec(metrics.Opts{
			Name: "kubelet_runtime_operations_duration_seconds", Help: "How long calls of the container runtime took, in seconds.",
			Buckets: prometheus.ExponentialBuckets(.005, 2.5, 14),
		}, "operation_type"),
		sandboxSeconds: metrics.NewHistogramVec(metrics.Opts{
			Name: "kubelet_run_podsandbox_duration_seconds", Help: "How long it took to make the sandbox of a pod, in seconds, by runtime handler.",
		}, "runtime_handler"),
		sandboxErrors: metrics.NewCounterVec(metrics.Opts{
			Name: "kubelet_run_podsandbox_errors_total", Help: "Sandboxes that could not be made, by runtime handler.",
		}, "runtime_handler"),
		pullSeconds: metrics.NewHistogramVec(metrics.Opts{
			Name: "kubelet_image_pull_duration_seconds", Help: "How long pulls of images took, in seconds, by the size of the image.",
			Buckets: []float64{1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600},
		}, "image_size_in_bytes"),
	}
	m.addRelists()
	return m
}

func (m *Metrics) addRelists() {
	m.relistSeconds = metrics.NewHistogram(metrics.Opts{
		Name: "kubelet_pleg_relist_duration_seconds", Help: "How long it took to list all pods of the runtime, in seconds.",
	})
	m.relistInterval = metrics.NewHistogram(metrics.Opts{
		Name: "kubelet_pleg_relist_interval_seconds", Help: "Time between two lists of all pods of the runtime, in seconds.",
	})
	m.lookSeconds = metrics.NewHistogram(metrics.Opts{
		Name: "kubelet_pleg_pod_relist_duration_seconds", Help: "How long it took to look at one pod of the runtime, in seconds.",
	})
	m.lastRelist = metrics.NewGauge(metrics.Opts{
		Name: "kubelet_pleg_last_seen_seconds", Help: "When the pods of the runtime were last listed, as Unix time in seconds.",
	})
	m.streams = metrics.NewCounter(metrics.Opts{
		Name: "kubelet_evented_pleg_connection_success_count", Help: "How often a stream of container events was opened.",
	})
	m.streamErrors = metrics.NewCounter(metrics.Opts{
		Name: "kubelet_evented_pleg_connection_error_count", Help: "How often a stream of container events failed.",
	})
}

// Collectors are the metrics, for a registry.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{
		m.calls, m.callErrors, m.callSeconds, m.sandboxSeconds, m.sandboxErrors, m.pullSeconds,
		m.relistSeconds, m.relistInterval, m.lookSeconds, m.lastRelist, m.streams, m.streamErrors,
	}
}

// Call is one call of the runtime that ended.
type Call struct {
	Method  string // as in the API: "RunPodSandbox"
	Handler string // the runtime handler of RunPodSandbox
	Took    time.Duration
	Err     error
}

// Called measures a call.
func (m *Metrics) Called(call Call) {
	operation := Operation(call.Method)
	m.calls.WithLabelValues(operation).Inc()
	m.callSeconds.WithLabelValues(operation).Observe(call.Took.Seconds())
	if call.Err != nil {
		m.callErrors.WithLabelValues(operation).Inc()
	}
	if call.Method != "RunPodSandbox" {
		return
	}
	m.sandboxSeconds.WithLabelValues(call.Handler).Observe(call.Took.Seconds())
	if call.Err != nil {
		m.sandboxErrors.WithLabelValues(call.Handler).Inc()
	}
}

// Operation is the stock label of a call: "run_podsandbox" for RunPodSandbox.
func Operation(method string) string {
	var out strings.Builder
	for i, r := range strings.ReplaceAll(method, "PodSandbox", "Podsandbox") {
		if unicode.IsUpper(r) && i > 0 {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}

// Pulls observes the puller. A pull that several pods wait for counts once.
func (m *Metrics) Pulls() images.Observer {
	return images.Observer{PullDone: func(_ images.Request, done images.PullDone) {
		if done.Err == nil && !done.Shared {
			m.pullSeconds.WithLabelValues(sizeRange(done.Size)).Observe(done.Took.Seconds())
		}
	}}
}

const (
	megabyte = 1 << 20
	gigabyte = 1 << 30
)

// sizeRange is the stock label for an image's size.
func sizeRange(size uint64) string {
	for _, r := range []struct {
		above uint64
		label string
	}{
		{100 * gigabyte, "GT100GB"}, {60 * gigabyte, "60GB-100GB"}, {40 * gigabyte, "40GB-60GB"}, {30 * gigabyte, "30GB-40GB"},
		{20 * gigabyte, "20GB-30GB"}, {10 * gigabyte, "10GB-20GB"}, {5 * gigabyte, "5GB-10GB"}, {gigabyte, "1GB-5GB"},
		{500 * megabyte, "500MB-1GB"}, {100 * megabyte, "100MB-500MB"}, {10 * megabyte, "10MB-100MB"}, {0, "0-10MB"},
	} {
		if size > r.above {
			return r.label
		}
	}
	return "N/A"
}

// Relists observes what looks at the runtime.
func (m *Metrics) Relists() observe.Trace {
	return observe.Trace{
		Listed: func(took time.Duration, _, _ int, err error) { m.listed(time.Now(), took, err) },
		Looked: func(_ string, took time.Duration, _ error) { m.lookSeconds.Observe(took.Seconds()) },
		EventStream: func(open bool, err error) {
			switch {
			case open:
				m.streams.Inc()
			case err != nil:
				m.streamErrors.Inc()
			}
		},
	}
}

func (m *Metrics) listed(now time.Time, took time.Duration, err error) {
	m.relistSeconds.Observe(took.Seconds())
	if last := m.relisted.Swap(now.UnixNano()); last != 0 {
		m.relistInterval.Observe(now.Sub(time.Unix(0, last)).Seconds())
	}
	if err == nil {
		m.lastRelist.Set(float64(now.UnixNano()) / float64(time.Second))
	}
}
