package apimetrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"nodekit.dev/metrics"
)

// Server counts the requests that the agent answers.
type Server struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec
	sockets  *prometheus.CounterVec
}

// NewServer makes the metrics; Collectors registers them.
func NewServer() *Server {
	labels := []string{"method", "path", "server_type", "long_running"}
	return &Server{
		requests: metrics.NewCounterVec(metrics.Opts{
			Name: "kubelet_http_requests_total", Help: "Requests to the agent's API.",
		}, labels...),
		seconds: metrics.NewHistogramVec(metrics.Opts{
			Name: "kubelet_http_requests_duration_seconds", Help: "How long the agent took to answer requests, in seconds.",
		}, labels...),
		inFlight: metrics.NewGaugeVec(metrics.Opts{
			Name: "kubelet_http_inflight_requests", Help: "Requests that the agent answers now.",
		}, labels...),
		sockets: metrics.NewCounterVec(metrics.Opts{
			Name: "kubelet_websocket_streaming_requests_total", Help: "WebSocket streams that the agent translated, by subresource.",
		}, "subresource"),
	}
}

// Collectors are the metrics, for a registry.
func (s *Server) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.requests, s.seconds, s.inFlight, s.sockets}
}

// Call is one request as the labels have it. Path must be one of few: a route,
// never what a client made up.
type Call struct {
	Method string
	Path   string
	// Port is "readwrite" or "readonly".
	Port        string
	LongRunning bool
}

func (c Call) labels() []string {
	return []string{c.Method, c.Path, c.Port, strconv.FormatBool(c.LongRunning)}
}

// Begun counts a request; Ended follows it.
func (s *Server) Begun(c Call) {
	s.requests.WithLabelValues(c.labels()...).Inc()
	s.inFlight.WithLabelValues(c.labels()...).Inc()
}

// Ended measures it.
func (s *Server) Ended(c Call, took time.Duration) {
	s.inFlight.WithLabelValues(c.labels()...).Dec()
	s.seconds.WithLabelValues(c.labels()...).Observe(took.Seconds())
}

// WebSocket counts a stream: "exec", "attach" or "portforward".
func (s *Server) WebSocket(subresource string) { s.sockets.WithLabelValues(subresource).Inc() }
