package apimetrics

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"nodekit.dev/metrics"
)

// Expiry says when the certificate in use ends; the zero time where there is
// none. It is asked when the metrics are shown, and must not block.
type Expiry func() time.Time

// Certificates measures the agent's certificates.
type Certificates struct {
	clientErrors, serverErrors prometheus.Counter
	lived                      prometheus.Histogram
	clientTTL, serverTTL       prometheus.GaugeFunc
}

// NewCertificates makes the metrics; nil means that there is no such
// certificate, and Collectors leaves its time out.
func NewCertificates(client, server Expiry) *Certificates {
	const minute, hour, day = 60, 3600, 86400
	c := &Certificates{
		clientErrors: metrics.NewCounter(metrics.Opts{
			Name: "kubelet_certificate_manager_client_expiration_renew_errors", Help: "Client certificates that could not be had.",
		}),
		serverErrors: metrics.NewCounter(metrics.Opts{
			Name: "kubelet_server_expiration_renew_errors", Help: "Serving certificates that could not be had.",
		}),
		lived: metrics.NewHistogram(metrics.Opts{
			Name: "kubelet_certificate_manager_server_rotation_seconds", Help: "How long serving certificates lived until another one replaced them, in seconds.",
			Buckets: []float64{minute, hour, 4 * hour, day, 7 * day, 30 * day, 90 * day, 180 * day, 360 * day, 1440 * day},
		}),
	}
	c.clientTTL = timeLeft("kubelet_certificate_manager_client_ttl_seconds", "client", client)
	c.serverTTL = timeLeft("kubelet_certificate_manager_server_ttl_seconds", "serving", server)
	return c
}

func timeLeft(name, kind string, expiry Expiry) prometheus.GaugeFunc {
	if expiry == nil {
		return nil
	}
	return metrics.NewGaugeFunc(metrics.Opts{
		Name: name, Help: "Time until the " + kind + " certificate ends, in seconds; negative after that, +Inf where there is none.",
	}, func() float64 { return secondsUntil(expiry(), time.Now()) })
}

func secondsUntil(end, now time.Time) float64 {
	if end.IsZero() {
		return math.Inf(1)
	}
	return math.Trunc(end.Sub(now).Seconds())
}

// Collectors are the metrics, for a registry.
func (c *Certificates) Collectors() []prometheus.Collector {
	list := []prometheus.Collector{c.clientErrors, c.serverErrors, c.lived}
	for _, ttl := range []prometheus.GaugeFunc{c.clientTTL, c.serverTTL} {
		if ttl != nil {
			list = append(list, ttl)
		}
	}
	return list
}

// RenewFailed counts a certificate that could not be had.
func (c *Certificates) RenewFailed(serving bool) {
	if serving {
		c.serverErrors.Inc()
		return
	}
	c.clientErrors.Inc()
}

// Rotated measures how long a certificate lived; the stock kubelet does so for
// serving ones.
func (c *Certificates) Rotated(serving bool, lived time.Duration) {
	if serving && lived > 0 {
		c.lived.Observe(lived.Seconds())
	}
}
