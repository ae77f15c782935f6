package metrics_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"nodekit.dev/metrics"
)

// shown is what GET /metrics answers.
func shown(t *testing.T, r *metrics.Registry, log *slog.Logger) string {
	t.Helper()
	w := httptest.NewRecorder()
	r.Handler(log).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestHelpTellsStability(t *testing.T) {
	r := metrics.New()
	beta := metrics.NewHistogramVec(metrics.Opts{Name: "b_seconds", Help: "A time.", Stability: metrics.Beta, Buckets: []float64{1, 2}}, "kind")
	if err := r.Add(metrics.NewCounter(metrics.Opts{Name: "a_total", Help: "A number."}), beta); err != nil {
		t.Fatal(err)
	}
	beta.WithLabelValues("x").Observe(1.5)
	text := shown(t, r, nil)
	for _, want := range []string{
		"# HELP a_total [ALPHA] A number.\n# TYPE a_total counter\na_total 0\n",
		"# HELP b_seconds [BETA] A time.\n", `b_seconds_bucket{kind="x",le="1"} 0`, `b_seconds_bucket{kind="x",le="2"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestNamesAreTakenOnce(t *testing.T) {
	r := metrics.New()
	o := metrics.Opts{Name: "a_total", Help: "A number."}
	if err := r.Add(metrics.NewCounter(o)); err != nil {
		t.Fatal(err)
	}
	if err := r.Add(metrics.NewCounter(o)); err == nil {
		t.Error("a second metric of the same name was taken")
	}
	if err := metrics.New().Add(metrics.NewCounter(o)); err != nil {
		t.Errorf("the registry of another agent: %v", err)
	}
}

func TestProcessAndBuild(t *testing.T) {
	r := metrics.New()
	if err := errors.Join(r.AddProcess(), r.AddBuildInfo("v1.37.2+nodekit.0.37.0"),
		r.AddFeatures([]metrics.Feature{{Name: "A", Stage: "BETA", Enabled: true}, {Name: "B"}})); err != nil {
		t.Fatal(err)
	}
	text := shown(t, r, nil)
	for _, want := range []string{
		"go_goroutines ", `git_version="v1.37.2+nodekit.0.37.0"`, `major="1",minor="37"`,
		`kubernetes_feature_enabled{name="A",stage="BETA"} 1`, `kubernetes_feature_enabled{name="B",stage=""} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	if _, err := os.Stat("/proc/self/stat"); err == nil && !strings.Contains(text, "process_resident_memory_bytes ") {
		t.Error("no process_resident_memory_bytes")
	}
}

// broken is a vendor's collector with a bug.
type broken struct{ desc *prometheus.Desc }

func (b broken) Describe(ch chan<- *prometheus.Desc) { ch <- b.desc }
func (b broken) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewInvalidMetric(b.desc, errors.New("out of order"))
}

func TestBrokenCollectorIsLeftOut(t *testing.T) {
	r := metrics.New()
	if err := r.Add(broken{metrics.NewDesc(metrics.Opts{Name: "bad", Help: "x"})}, metrics.NewGauge(metrics.Opts{Name: "good", Help: "y"})); err != nil {
		t.Fatal(err)
	}
	var logs bytes.Buffer
	text := shown(t, r, slog.New(slog.NewTextHandler(&logs, nil)))
	if !strings.Contains(text, "good 0") || !strings.Contains(logs.String(), "out of order") {
		t.Errorf("%s\n%s", text, &logs)
	}
	if _, err := r.Gather(); err == nil {
		t.Error("Gather does not tell of it")
	}
}

func Example() {
	all := metrics.New()
	doors := metrics.NewGaugeVec(metrics.Opts{Name: "rack_doors_open", Help: "Doors that are open."}, "side")
	if err := all.Add(doors); err != nil {
		fmt.Println(err)
		return
	}
	doors.WithLabelValues("front").Set(1)
	w := httptest.NewRecorder()
	all.Handler(nil).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	fmt.Print(w.Body)
	// Output:
	// # HELP rack_doors_open [ALPHA] Doors that are open.
	// # TYPE rack_doors_open gauge
	// rack_doors_open{side="front"} 1
}
