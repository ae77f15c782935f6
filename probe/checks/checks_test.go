package checks

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"nodekit.dev/probe"
	"nodekit.dev/probe/execcheck"
)

// pod is a target whose container listens at an address, under the name web.
func pod(t *testing.T, address string) probe.Target {
	t.Helper()
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return probe.Target{Host: host, ContainerID: "c1", Timeout: time.Second, Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: int32(port)}}}
}

func serveHealth(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return l.Addr().String()
}

type echo struct{}

func (echo) ExecSync(_ context.Context, id string, cmd []string, timeout time.Duration) (execcheck.Result, error) {
	return execcheck.Result{Stdout: []byte(strings.Join(append(cmd, id, timeout.String()), " "))}, nil
}

func TestDefault(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.URL.String() + " " + r.UserAgent()))
	}))
	defer server.Close()
	web, db := pod(t, server.Listener.Addr().String()), pod(t, serveHealth(t))
	named := intstr.FromString("web")
	for _, tc := range []struct {
		target  probe.Target
		handler corev1.ProbeHandler
		output  string
	}{
		{web, corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "a?b=1", Port: named}}, "/a?b=1 " + probe.DefaultUserAgent},
		{web, corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: named}}, ""},
		{db, corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: db.Ports[0].ContainerPort}}, "service healthy"},
		{web, corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"echo"}}}, "echo c1 1s"},
	} {
		tc.target.Handler = tc.handler
		kind := probe.KindOf(tc.handler)
		if got := Default(Config{Exec: echo{}})[kind](t.Context(), tc.target); got.Result != probe.Success || got.Output != tc.output {
			t.Errorf("%s: %+v", kind, got)
		}
	}
}

// What can not be checked is neither a success nor a failure.
func TestUnknown(t *testing.T) {
	none := intstr.FromString("none")
	at := probe.Target{Host: "10.0.0.7", ContainerID: "c1"}
	for name, tc := range map[string]struct {
		target  probe.Target
		handler corev1.ProbeHandler
	}{
		"http, port":   {at, corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: none}}},
		"http, no IP":  {probe.Target{}, corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}},
		"tcp, port":    {at, corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: none}}},
		"tcp, no IP":   {probe.Target{}, corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}},
		"grpc, port":   {at, corev1.ProbeHandler{GRPC: &corev1.GRPCAction{}}},
		"grpc, no IP":  {probe.Target{}, corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 80}}},
		"exec, no ID":  {probe.Target{}, corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"echo"}}}},
		"exec, no cmd": {at, corev1.ProbeHandler{Exec: &corev1.ExecAction{}}},
	} {
		tc.target.Handler = tc.handler
		got := Default(Config{Exec: echo{}, DialContext: nobody})[probe.KindOf(tc.handler)](t.Context(), tc.target)
		if got.Result != probe.Unknown || got.Err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	at.Handler.Exec = &corev1.ExecAction{Command: []string{"echo"}}
	if got := Default(Config{})[probe.Exec](t.Context(), at); got.Result != probe.Unknown || got.Err == nil {
		t.Errorf("no Execer: %+v", got)
	}
	for kind, check := range Default(Config{Exec: echo{}}) {
		if got := check(t.Context(), probe.Target{Host: "10.0.0.7", ContainerID: "c1"}); got.Result != probe.Unknown || got.Err == nil {
			t.Errorf("%s of a handler without it: %+v", kind, got)
		}
	}
}

var errNobody = errors.New("nobody is there")

func nobody(context.Context, string, string) (net.Conn, error) { return nil, errNobody }

// firstByte is what a check of a connection says first: 0x16 begins TLS, P the
// preface of HTTP/2, G a GET of HTTP/1.
func firstByte(t *testing.T, cfg Config, h corev1.ProbeHandler) byte {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := make(chan byte, 1)
	cfg.DialContext = func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			b := make([]byte, 1)
			_, _ = theirs.Read(b)
			first <- b[0]
			cancel()
			_ = theirs.Close()
		}()
		return ours, nil
	}
	Default(cfg)[probe.KindOf(h)](ctx, probe.Target{Host: "10.0.0.7", Handler: h})
	return <-first
}

func TestGates(t *testing.T) {
	mode, protocol := corev1.GRPCProbeModeTLS, corev1.HTTPProtocolHTTP2
	secret := corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 80, Mode: &mode}}
	h2c := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80), Protocol: &protocol}}
	const tls, http2, http1 = 0x16, 'P', 'G'
	for name, tc := range map[string]struct {
		cfg     Config
		handler corev1.ProbeHandler
		want    byte
	}{
		"TLS":     {Config{GRPCTLS: true}, secret, tls},
		"off":     {Config{H2C: true}, secret, http2},
		"h2c":     {Config{H2C: true}, h2c, http2},
		"h2c off": {Config{GRPCTLS: true}, h2c, http1},
	} {
		if got := firstByte(t, tc.cfg, tc.handler); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
