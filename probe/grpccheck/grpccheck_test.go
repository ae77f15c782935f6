package grpccheck

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"nodekit.dev/probe"
)

func serve(t *testing.T, withHealth bool) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	if withHealth {
		h := health.NewServer()
		h.SetServingStatus("down", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
		grpc_health_v1.RegisterHealthServer(server, h)
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return l.Addr().String()
}

func TestCheck(t *testing.T) {
	good, bare := serve(t, true), serve(t, false)
	for _, tc := range []struct {
		address, service string
		result           probe.Result
		output           string
	}{
		{good, "", probe.Success, "service healthy"},
		{good, "down", probe.Failure, `service unhealthy (responded with "NOT_SERVING")`},
		{good, "none", probe.Failure, "error: health rpc probe failed: "},
		{bare, "", probe.Failure, "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): "},
	} {
		got := Check(t.Context(), Target{Address: tc.address, Service: tc.service, Timeout: time.Second})
		if got.Result != tc.result || !strings.HasPrefix(got.Output, tc.output) {
			t.Errorf("%q: %+v", tc.service, got)
		}
	}
}

func TestClosedPortIsATimeout(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	got := Check(ctx, Target{Address: "127.0.0.1:1", Timeout: time.Second})
	if want := `timeout: failed to connect service "127.0.0.1:1" within 1s: context deadline exceeded`; got.Output != want {
		t.Errorf("%+v", got)
	}
}
