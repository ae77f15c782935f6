package metrics

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// Registry holds the metrics of one agent. Safe for concurrent use.
type Registry struct {
	all *prometheus.Registry
}

// New makes an empty registry.
func New() *Registry { return &Registry{all: prometheus.NewRegistry()} }

// Add registers metrics. A name that is taken, or one with other labels, is an
// error; what stands before it in the list is registered all the same.
func (r *Registry) Add(list ...prometheus.Collector) error {
	for _, c := range list {
		if err := r.all.Register(c); err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
	}
	return nil
}

// AddProcess registers what concerns the whole process: process_* (Linux and
// Windows) and go_*.
func (r *Registry) AddProcess() error {
	return r.Add(
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector(),
	)
}

// AddBuildInfo registers kubernetes_build_info. The version is that of the
// stock kubelet, with anything behind a plus.
func (r *Registry) AddBuildInfo(version string) error {
	info := NewGaugeVec(Opts{
		Name: "kubernetes_build_info", Stability: Beta,
		Help: "Always 1; the labels say what this program was built from, with what and for what.",
	}, "major", "minor", "git_version", "git_commit", "git_tree_state", "build_date", "go_version", "compiler", "platform")
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	info.WithLabelValues(major, minor, version, "", "", "", runtime.Version(), runtime.Compiler, runtime.GOOS+"/"+runtime.GOARCH).Set(1)
	return r.Add(info)
}

// Feature is one feature gate and its value.
type Feature struct {
	Name string
	// Stage is "ALPHA", "BETA", "DEPRECATED", or empty for GA.
	Stage   string
	Enabled bool
}

// AddFeatures registers kubernetes_feature_enabled.
func (r *Registry) AddFeatures(list []Feature) error {
	enabled := NewGaugeVec(Opts{
		Name: "kubernetes_feature_enabled", Stability: Beta, Help: "1 for a feature gate that is on, 0 for one that is off.",
	}, "name", "stage")
	for _, f := range list {
		value := 0.0
		if f.Enabled {
			value = 1
		}
		enabled.WithLabelValues(f.Name, f.Stage).Set(value)
	}
	return r.Add(enabled)
}

// Gather reads all metrics once. What a broken collector says is left out, and
// told by the error.
func (r *Registry) Gather() ([]*dto.MetricFamily, error) { return r.all.Gather() }

// Handler serves the metrics, in the text or the protobuf format as asked for,
// compressed if asked for. A broken collector is logged and left out: the rest
// is still worth having.
func (r *Registry) Handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(r.all, promhttp.HandlerOpts{
		ErrorLog:         complaints{log},
		ErrorHandling:    promhttp.ContinueOnError,
		ProcessStartTime: time.Now(),
	})
}

// complaints is where promhttp tells what was left out.
type complaints struct{ log *slog.Logger }

func (c complaints) Println(v ...any) {
	if c.log != nil {
		c.log.Error("metrics are left out", "err", strings.TrimSpace(fmt.Sprintln(v...)))
	}
}
