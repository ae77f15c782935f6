package apimetrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"nodekit.dev/metrics"
)

// Client counts the requests that the agent sends.
type Client struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	waited   *prometheus.HistogramVec
}

// NewClient makes the metrics; Collectors registers them.
func NewClient() *Client {
	return &Client{
		requests: metrics.NewCounterVec(metrics.Opts{
			Name: "rest_client_requests_total", Help: "Requests to the API server, by status code, method and host.",
		}, "code", "method", "host"),
		seconds: metrics.NewHistogramVec(metrics.Opts{
			Name: "rest_client_request_duration_seconds", Help: "How long requests to the API server took, in seconds.",
			Buckets: []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60},
		}, "verb", "host"),
		waited: metrics.NewHistogramVec(metrics.Opts{
			Name: "rest_client_rate_limiter_duration_seconds", Help: "How long requests to the API server waited for their turn, in seconds.",
			Buckets: []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60},
		}, "verb", "host"),
	}
}

// Collectors are the metrics, for a registry.
func (c *Client) Collectors() []prometheus.Collector {
	return []prometheus.Collector{c.requests, c.seconds, c.waited}
}

// Request counts one request; code 0 is one that was not answered.
func (c *Client) Request(method, host string, code int, took time.Duration) {
	label := "<error>"
	if code != 0 {
		label = strconv.Itoa(code)
	}
	c.requests.WithLabelValues(label, method, host).Inc()
	c.seconds.WithLabelValues(method, host).Observe(took.Seconds())
}

// Throttled notes how long a request of a lane waited. What it is, and where
// it goes, is not known yet then: the lane stands for the verb.
func (c *Client) Throttled(lane string, waited time.Duration) {
	c.waited.WithLabelValues(lane, "").Observe(waited.Seconds())
}
