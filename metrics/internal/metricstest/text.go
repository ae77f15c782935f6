// Package metricstest shows metrics as text, for the tests of package metrics'
// subpackages.
package metricstest

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"nodekit.dev/metrics"
)

// Want fails the test for each line that the metrics do not show.
func Want(t *testing.T, list []prometheus.Collector, lines ...string) {
	t.Helper()
	text := Text(t, list)
	for _, line := range lines {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
}

// Text is all that the metrics show.
func Text(t *testing.T, list []prometheus.Collector) string {
	t.Helper()
	r := metrics.New()
	if err := r.Add(list...); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r.Handler(nil).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}
