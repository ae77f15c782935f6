package metrics

import "github.com/prometheus/client_golang/prometheus"

// Stability is how much users may rely on a metric. It only shows in the help.
type Stability string

// The stabilities of the stock kubelet. The zero value is Alpha.
const (
	Alpha    Stability = "ALPHA"
	Beta     Stability = "BETA"
	Stable   Stability = "STABLE"
	Internal Stability = "INTERNAL"
)

// Opts describe one metric.
type Opts struct {
	// Name is the whole name, such as "kubelet_running_pods".
	Name string
	Help string
	// Stability is Alpha when empty.
	Stability Stability
	// Buckets are the upper bounds of a histogram; nil: Prometheus' default.
	Buckets []float64
}

func (o Opts) help() string {
	if o.Stability == "" {
		o.Stability = Alpha
	}
	return "[" + string(o.Stability) + "] " + o.Help
}

// NewCounter makes a counter without labels, which shows from the start.
func NewCounter(o Opts) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: o.Name, Help: o.help()})
}

// NewCounterVec makes a counter with labels.
func NewCounterVec(o Opts, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: o.Name, Help: o.help()}, labels)
}

// NewGauge makes a gauge without labels.
func NewGauge(o Opts) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: o.Name, Help: o.help()})
}

// NewGaugeVec makes a gauge with labels.
func NewGaugeVec(o Opts, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: o.Name, Help: o.help()}, labels)
}

// NewGaugeFunc makes a gauge that asks for its value when it is shown.
func NewGaugeFunc(o Opts, value func() float64) prometheus.GaugeFunc {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: o.Name, Help: o.help()}, value)
}

// NewHistogram makes a histogram without labels.
func NewHistogram(o Opts) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: o.Name, Help: o.help(), Buckets: o.Buckets})
}

// NewHistogramVec makes a histogram with labels.
func NewHistogramVec(o Opts, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: o.Name, Help: o.help(), Buckets: o.Buckets}, labels)
}

// NewDesc describes a metric that a collector of one's own makes when asked.
func NewDesc(o Opts, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(o.Name, o.help(), labels, nil)
}
