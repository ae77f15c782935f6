package apiserver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// pipes is a network of one server without sockets, so that time can be fake.
// Connections that are cut swallow what is written and say nothing any more,
// as with a firewall that drops packets.
type pipes struct {
	accept chan net.Conn
	mu     sync.Mutex
	made   []*pipe
}

type pipe struct {
	net.Conn
	cut    atomic.Bool
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) DialContext(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	c := &pipe{Conn: near, closed: make(chan struct{})}
	p.mu.Lock()
	p.made = append(p.made, c)
	p.mu.Unlock()
	p.accept <- far
	return c, nil
}

func (p *pipes) cutAll() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.made {
		c.cut.Store(true)
	}
	return len(p.made)
}

func (c *pipe) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.cut.Load() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *pipe) Write(b []byte) (int, error) {
	if c.cut.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *pipe) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func (p *pipes) Accept() (net.Conn, error) {
	c, ok := <-p.accept
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p *pipes) Close() error   { return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

// serveWatches answers each request with headers and no more, as a watch where
// nothing happens.
func serveWatches(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", Protobuf+";stream=watch")
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// ended is when a watch came to its end.
func ended(w watch.Interface) {
	for range w.ResultChan() { // an error event, then closed
	}
}

// A connection that died silently is found by a ping, with the stock times.
func TestDeadConnectionIsFoundWithin45Seconds(t *testing.T) {
	// Certificates are made outside of the bubble, whose clock says 2000.
	tlsServer := httptest.NewUnstartedServer(http.NotFoundHandler())
	tlsServer.EnableHTTP2 = true
	tlsServer.StartTLS()
	tlsServer.Close()
	synctest.Test(t, func(t *testing.T) {
		network := &pipes{accept: make(chan net.Conn)}
		server := &http.Server{Handler: http.HandlerFunc(serveWatches), TLSConfig: tlsServer.TLS.Clone(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
		go func() { _ = server.ServeTLS(network, "", "") }()
		cfg := (&fakeAPI{Server: tlsServer}).config()
		cfg.REST.Dial = network.DialContext
		cfg.REST.Host = "https://127.0.0.1:6443"
		client := mustNew(t, cfg)
		watchPods := func() watch.Interface {
			w, err := client.Lane(LaneRead).Core().Get().Resource("pods").Param("watch", "1").Watch(Context(t.Context(), nil))
			if err != nil {
				t.Fatal(err)
			}
			return w
		}

		first := watchPods()
		time.Sleep(61 * time.Second) // fake time: pings are answered, nothing ends
		if n := open(client.rest.dialer); n != 1 {
			t.Fatalf("%d connections after a quiet minute", n)
		}
		if n := network.cutAll(); n != 1 {
			t.Fatalf("%d connections were made", n)
		}
		start := time.Now()
		ended(first)
		if took := time.Since(start); took > 45*time.Second {
			t.Fatalf("the dead connection was found after %v", took)
		} else {
			t.Logf("found after %v", took)
		}
		second := watchPods()
		if n := open(client.rest.dialer); n != 1 {
			t.Fatalf("%d connections, want only the new one", n)
		}
		second.Stop()
		ended(second)
		client.CloseAll()
		close(network.accept)
		_ = server.Close()
	})
}

// blackhole is a TCP proxy that can stop forwarding without closing anything.
type blackhole struct {
	net.Listener
	to   string
	drop atomic.Bool // for the connections that there are
}

func newBlackhole(t *testing.T, to string) *blackhole {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &blackhole{Listener: l, to: to}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", b.to)
			if err != nil {
				near.Close()
				continue
			}
			healthy := !b.drop.Load()
			for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
				wg.Go(func() {
					b.forward(pair[0], pair[1], healthy)
					pair[1].Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return b
}

// forward copies until one side closes; connections made before drop was set
// lose what they send after it.
func (b *blackhole) forward(from, to net.Conn, old bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if old && b.drop.Load() {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// The same over TCP, with short times: the watch ends by itself, and a
// heartbeat gets through as soon as HeartbeatFailed was called.
func TestBlackHole(t *testing.T) {
	api := newFakeAPI(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") {
			serveWatches(w, r)
			return
		}
		reply(t, w, &corev1.Node{})
	})
	proxy := newBlackhole(t, api.Listener.Addr().String())
	cfg := api.config()
	cfg.REST.Host = "https://" + proxy.Addr().String()
	cfg.REST.ServerName = "example.com"
	cfg.HTTP2 = HTTP2{ReadIdle: 300 * time.Millisecond, PingTimeout: 200 * time.Millisecond}
	client := mustNew(t, cfg)
	ctx := within(t)
	heartbeat := func(ctx context.Context) error {
		return client.Lane(LaneNodeStatus).Core().Get().Resource("nodes").Name("x").Do(ctx).Error()
	}
	if err := heartbeat(ctx); err != nil {
		t.Fatal(err)
	}
	watching, err := client.Lane(LaneRead).Core().Get().Resource("pods").Param("watch", "1").Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	proxy.drop.Store(true)

	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if err := heartbeat(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("heartbeat through a black hole: %v", err)
	}
	client.HeartbeatFailed()
	if err := heartbeat(ctx); err != nil {
		t.Fatalf("heartbeat on a new connection: %v", err)
	}
	ended(watching)
	if ctx.Err() != nil {
		t.Fatal("only the context ended the watch")
	}
	again, err := client.Lane(LaneRead).Core().Get().Resource("pods").Param("watch", "1").Watch(ctx)
	if err != nil {
		t.Fatalf("a new watch: %v", err)
	}
	again.Stop()
}

// A heartbeat that failed makes Run look at the other connections: one that is
// dead is closed long before a ping tells, one that is alive stays.
func TestProbe(t *testing.T) {
	for _, dead := range []bool{true, false} {
		probed := make(chan struct{}, 10)
		api := newFakeAPI(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("watch") {
				serveWatches(w, r)
				return
			}
			if r.URL.Path == "/version" {
				probed <- struct{}{}
			}
			w.WriteHeader(http.StatusForbidden) // is an answer too
		})
		proxy := newBlackhole(t, api.Listener.Addr().String())
		cfg := api.config()
		cfg.REST.Host = "https://" + proxy.Addr().String()
		client := mustNew(t, cfg)
		client.patience = 100 * time.Millisecond
		if !dead {
			client.patience = 10 * time.Second
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- client.Run(ctx) }()
		watching, err := client.Lane(LaneRead).Core().Get().Resource("pods").Param("watch", "1").Watch(within(t))
		if err != nil {
			t.Fatal(err)
		}
		proxy.drop.Store(dead)
		client.HeartbeatFailed()
		if dead {
			ended(watching)
			again, err := client.Lane(LaneRead).Core().Get().Resource("pods").Param("watch", "1").Watch(within(t))
			if err != nil {
				t.Fatal(err)
			}
			again.Stop()
		} else {
			<-probed
			client.probe(within(t)) // and another, to its end
			select {
			case <-watching.ResultChan():
				t.Fatal("a live watch was cut")
			default:
			}
		}
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if n := open(client.rest.dialer); n != 0 {
			t.Fatalf("%d connections after Run", n)
		}
	}
}

// DISABLE_HTTP2 has no pings: only HeartbeatFailed ends a dead watch.
func TestBlackHoleWithoutHTTP2(t *testing.T) {
	api := newFakeAPI(t, serveWatches)
	proxy := newBlackhole(t, api.Listener.Addr().String())
	cfg := api.config()
	cfg.REST.Host = "https://" + proxy.Addr().String()
	cfg.HTTP2 = HTTP2{Disabled: true, ReadIdle: time.Millisecond, PingTimeout: time.Millisecond}
	client := mustNew(t, cfg)
	watching, err := client.Lane(LaneRead).Core().Get().Resource("pods").Param("watch", "1").Watch(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if r := api.requests()[0]; r.ProtoMajor != 1 {
		t.Fatalf("%s with HTTP/2 disabled", r.Proto)
	}
	proxy.drop.Store(true)
	client.HeartbeatFailed()
	ended(watching)
}
