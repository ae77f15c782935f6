package grpccheck

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"nodekit.dev/probe"
)

// answers is a health server that says what a test wants.
type answers struct {
	grpc_health_v1.UnimplementedHealthServer
	check func(context.Context) (*grpc_health_v1.HealthCheckResponse, error)
}

func (a answers) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	return a.check(ctx)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// serve runs a server; nil: one without the health protocol.
func serve(t *testing.T, h grpc_health_v1.HealthServer, o ...grpc.ServerOption) string {
	t.Helper()
	l, server := listen(t), grpc.NewServer(o...)
	if h != nil {
		grpc_health_v1.RegisterHealthServer(server, h)
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return l.Addr().String()
}

func healthServer() *health.Server {
	h := health.NewServer()
	h.SetServingStatus("down", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	return h
}

func overTLS() grpc.ServerOption {
	s := httptest.NewTLSServer(nil) // for its certificate, which nobody trusts
	defer s.Close()
	return grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: s.TLS.Certificates}))
}

// cue is a context whose deadline passes when the test says so.
type cue struct {
	once sync.Once
	done chan struct{}
}

func newCue() *cue { return &cue{done: make(chan struct{})} }

func (c *cue) now() { c.once.Do(func() { close(c.done) }) }

func (c *cue) Done() <-chan struct{}           { return c.done }
func (*cue) Deadline() (at time.Time, ok bool) { return time.Time{}, false }
func (*cue) Value(any) any                     { return nil }

func (c *cue) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestCheck(t *testing.T) {
	good, bare, secret := serve(t, healthServer()), serve(t, nil), serve(t, healthServer(), overTLS())
	long := serve(t, answers{check: func(context.Context) (*grpc_health_v1.HealthCheckResponse, error) {
		return nil, status.Error(codes.Internal, strings.Repeat("x", 2*probe.OutputLimit))
	}})
	huge := serve(t, answers{check: func(context.Context) (*grpc_health_v1.HealthCheckResponse, error) {
		return nil, status.Error(codes.Internal, strings.Repeat("x", 2*answerLimit))
	}})
	for name, tc := range map[string]struct {
		target Target
		result probe.Result
		output string
	}{
		"serving":         {Target{Address: good}, probe.Success, "service healthy"},
		"not serving":     {Target{Address: good, Service: "down"}, probe.Failure, `service unhealthy (responded with "NOT_SERVING")`},
		"unknown service": {Target{Address: good, Service: "none"}, probe.Failure, "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service"},
		"no health protocol": {Target{Address: bare}, probe.Failure,
			"error: this server does not implement the grpc health protocol (grpc.health.v1.Health): unknown service grpc.health.v1.Health"},
		"TLS":          {Target{Address: secret, TLS: true}, probe.Success, "service healthy"},
		"long answer":  {Target{Address: long}, probe.Failure, "error: health rpc probe failed: rpc error: code = Internal desc = xxx"},
		"huge answer":  {Target{Address: huge}, probe.Failure, "error: health rpc probe failed: rpc error: "},
		"not a target": {Target{Address: "%zz"}, probe.Failure, `error: failed to connect service at "%zz": `},
	} {
		got := Check(t.Context(), tc.target)
		if got.Result != tc.result || !strings.HasPrefix(got.Output, tc.output) || len(got.Output) > probe.OutputLimit || got.Err != nil {
			t.Errorf("%s: %d bytes, %+v", name, len(got.Output), got)
		}
	}
}

// closing calls closed when the connection is closed.
type closing struct {
	net.Conn
	closed func()
}

func (c closing) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

func TestNoConnectionIsATimeout(t *testing.T) {
	nobody := listen(t)
	_ = nobody.Close()
	silent := listen(t)
	defer silent.Close()
	plain, secret := serve(t, healthServer()), serve(t, healthServer(), overTLS())
	for name, target := range map[string]Target{
		"closed port":   {Address: nobody.Addr().String()},
		"silent":        {Address: silent.Addr().String()},
		"silent to TLS": {Address: silent.Addr().String(), TLS: true},
		"TLS to plain":  {Address: plain, TLS: true},
		"plain to TLS":  {Address: secret},
	} {
		ctx := newCue()
		target.Timeout = time.Second
		target.DialContext = func(dial context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(dial, network, address)
			if err != nil || strings.HasPrefix(name, "silent") {
				ctx.now()
				return conn, err
			}
			return closing{conn, ctx.now}, nil
		}
		want := `timeout: failed to connect service "` + target.Address + `" within 1s: context deadline exceeded`
		if got := Check(ctx, target); got.Result != probe.Failure || got.Output != want || got.Err != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestSlowServer(t *testing.T) {
	ctx := newCue()
	at := serve(t, answers{check: func(call context.Context) (*grpc_health_v1.HealthCheckResponse, error) {
		ctx.now()
		<-call.Done()
		return nil, call.Err()
	}})
	got := Check(ctx, Target{Address: at, Timeout: time.Second})
	if got.Result != probe.Failure || got.Output != "timeout: health rpc did not complete within 1s" {
		t.Errorf("%+v", got)
	}
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := Check(ctx, Target{Address: "127.0.0.1:1"})
	if want := `error: failed to connect service at "127.0.0.1:1": context canceled`; got.Result != probe.Failure || got.Output != want {
		t.Errorf("%+v", got)
	}
}

// lingering tells what SetLinger was asked for.
type lingering struct {
	*net.TCPConn
	seconds *atomic.Int64
}

func (l lingering) SetLinger(seconds int) error {
	l.seconds.Store(int64(seconds))
	return l.TCPConn.SetLinger(seconds)
}

func TestEachCheckHasAConnectionThatIsReset(t *testing.T) {
	var agents []string
	at := serve(t, answers{check: func(ctx context.Context) (*grpc_health_v1.HealthCheckResponse, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		agents = append(agents, md.Get("user-agent")...)
		return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}, nil
	}})
	dials := 0
	for _, agent := range []string{"", "mine/2"} {
		var linger atomic.Int64
		linger.Store(-1)
		got := Check(t.Context(), Target{Address: at, UserAgent: agent, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			dials++
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return lingering{conn.(*net.TCPConn), &linger}, nil
		}})
		if got.Result != probe.Success || linger.Load() != 0 {
			t.Errorf("%+v, linger %d", got, linger.Load())
		}
	}
	if dials != 2 || len(agents) != 2 || !strings.HasPrefix(agents[0], "kube-probe/1.37 grpc-go/") || !strings.HasPrefix(agents[1], "mine/2 grpc-go/") {
		t.Errorf("%d dials, agents %q", dials, agents)
	}
}

// pipes is a listener of one connection.
type pipes struct {
	conn chan net.Conn
	once sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p.conn; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.conn) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func TestServerThatComesInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, server := &pipes{conn: make(chan net.Conn)}, grpc.NewServer()
		grpc_health_v1.RegisterHealthServer(server, healthServer())
		go func() { _ = server.Serve(l) }()
		defer server.Stop()
		began := time.Now()
		dial := func(context.Context, string, string) (net.Conn, error) {
			if time.Since(began) == 0 {
				return nil, errors.New("connection refused")
			}
			ours, theirs := net.Pipe()
			l.conn <- theirs
			return ours, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if got := Check(ctx, Target{Address: "10.0.0.7:80", DialContext: dial}); got.Result != probe.Success {
			t.Errorf("%+v", got)
		}
	})
}
