package apimetrics

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"nodekit.dev/metrics"
	"nodekit.dev/metrics/internal/metricstest"
)

func TestClient(t *testing.T) {
	c := NewClient()
	c.Request("GET", "10.0.0.1:6443", 200, 30*time.Millisecond)
	c.Request("PATCH", "10.0.0.1:6443", 0, 30*time.Second)
	c.Throttled("pod status", 300*time.Millisecond)
	metricstest.Want(t, c.Collectors(),
		`rest_client_requests_total{code="200",host="10.0.0.1:6443",method="GET"} 1`,
		`rest_client_requests_total{code="<error>",host="10.0.0.1:6443",method="PATCH"} 1`,
		`rest_client_request_duration_seconds_bucket{host="10.0.0.1:6443",verb="PATCH",le="30"} 1`,
		`rest_client_rate_limiter_duration_seconds_bucket{host="",verb="pod status",le="0.5"} 1`)
}

func TestServer(t *testing.T) {
	s := NewServer()
	call := Call{Method: "GET", Path: "containerLogs", Port: "readwrite", LongRunning: true}
	s.Begun(call)
	s.Begun(call)
	s.Ended(call, 2*time.Second)
	s.WebSocket("exec")
	const labels = `{long_running="true",method="GET",path="containerLogs",server_type="readwrite"}`
	metricstest.Want(t, s.Collectors(),
		`kubelet_websocket_streaming_requests_total{subresource="exec"} 1`, "kubelet_http_requests_total"+labels+" 2", "kubelet_http_inflight_requests"+labels+" 1", "kubelet_http_requests_duration_seconds_sum"+labels+" 2")
}

func TestCertificates(t *testing.T) {
	c := NewCertificates(func() time.Time { return time.Time{} }, nil)
	c.RenewFailed(true)
	c.RenewFailed(false)
	c.Rotated(true, 2*time.Hour)
	c.Rotated(false, 2*time.Hour)
	metricstest.Want(t, c.Collectors(),
		"kubelet_certificate_manager_client_expiration_renew_errors 1", "kubelet_server_expiration_renew_errors 1",
		"kubelet_certificate_manager_server_rotation_seconds_count 1", "kubelet_certificate_manager_client_ttl_seconds +Inf")
	now := time.Unix(1000, 0)
	for end, want := range map[time.Time]float64{{}: math.Inf(1), now.Add(90 * time.Second): 90, now.Add(-time.Second): -1} {
		if got := secondsUntil(end, now); got != want {
			t.Errorf("%v: %v, want %v", end, got, want)
		}
	}
}

func TestStartup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStartup(time.Now().Add(-time.Minute), time.Now())
		time.Sleep(2 * time.Second) // fake time
		s.Registering()
		time.Sleep(time.Second) // fake time
		s.Registering()         // a second try
		s.Registered(true)
		time.Sleep(4 * time.Second) // fake time
		s.Ready()
		s.StatusWritten(40 * time.Millisecond)
		metricstest.Want(t, s.Collectors(),
			"kubelet_node_startup_pre_kubelet_duration_seconds 60", "kubelet_node_startup_pre_registration_duration_seconds 2",
			"kubelet_node_startup_registration_duration_seconds 1", "kubelet_node_startup_post_registration_duration_seconds 4",
			"kubelet_node_startup_duration_seconds 67", `kubelet_pod_status_sync_duration_seconds_bucket{le="0.05"} 1`)
		old := NewStartup(time.Time{}, time.Now())
		old.Registering()
		old.Registered(false)
		time.Sleep(time.Second) // fake time
		old.Ready()
		metricstest.Want(t, old.Collectors(), "kubelet_node_startup_post_registration_duration_seconds 0")
	})
}

func Example() {
	client := NewClient()
	all := metrics.New()
	if err := all.Add(client.Collectors()...); err != nil {
		fmt.Println(err)
		return
	}
	client.Request("GET", "api.example:6443", 404, 5*time.Millisecond)
	families, _ := all.Gather()
	for _, f := range families {
		fmt.Println(f.GetName(), f.GetHelp())
	}
	// Output:
	// rest_client_request_duration_seconds [ALPHA] How long requests to the API server took, in seconds.
	// rest_client_requests_total [ALPHA] Requests to the API server, by status code, method and host.
}
