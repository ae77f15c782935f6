package httpcheck

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"nodekit.dev/probe"
)

// deadline is a context whose deadline comes when a test says so, so that no
// test waits for a time or races with one.
type deadline struct {
	once sync.Once
	done chan struct{}
}

func newDeadline() *deadline { return &deadline{done: make(chan struct{})} }

func (d *deadline) come()                       { d.once.Do(func() { close(d.done) }) }
func (d *deadline) Deadline() (time.Time, bool) { return time.Time{}, false }
func (d *deadline) Done() <-chan struct{}       { return d.done }
func (d *deadline) Value(any) any               { return nil }

func (d *deadline) Err() error {
	select {
	case <-d.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// rawServer runs script on each connection and then waits until the client is
// gone, which it tells.
type rawServer struct {
	*testing.T
	address string
	gone    chan struct{} // one value for each connection that ended
}

func listen(t *testing.T, script func(net.Conn)) *rawServer {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &rawServer{T: t, address: l.Addr().String(), gone: make(chan struct{}, 100)}
	var conns sync.WaitGroup
	t.Cleanup(conns.Wait)
	t.Cleanup(func() { _ = l.Close() })
	conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				script(conn)
				for buf := make([]byte, 1<<10); err == nil; {
					_, err = conn.Read(buf)
				}
				_ = conn.Close()
				s.gone <- struct{}{}
			})
		}
	})
	return s
}

// answering sends text when the request has come.
func answering(text string) func(net.Conn) {
	return func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			_, _ = conn.Write([]byte(text))
		}
	}
}

func (s *rawServer) check(ctx context.Context, cfg Config) probe.Outcome {
	return New(cfg).Check(ctx, Target{URL: parse(s.T, "http://"+s.address+"/x")})
}

// watched tells of what the client does with its connection.
type watched struct {
	*net.TCPConn
	onRead, onWrite func(nth int)
	reads, writes   int
}

func (w *watched) Read(p []byte) (int, error) {
	if w.reads++; w.onRead != nil {
		w.onRead(w.reads)
	}
	return w.TCPConn.Read(p)
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.TCPConn.Write(p)
	if w.writes++; w.onWrite != nil {
		w.onWrite(w.writes)
	}
	return n, err
}

func watching(onRead, onWrite func(nth int)) Config {
	return Config{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &watched{TCPConn: conn.(*net.TCPConn), onRead: onRead, onWrite: onWrite}, nil
	}}
}
