package httpcheck

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"nodekit.dev/probe"
)

// TestMain: no check leaves a goroutine behind, whatever the server did.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	noHeaders = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
	noBody    = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
)

func wantFailure(t *testing.T, got probe.Outcome, output string) {
	t.Helper()
	if want := (probe.Outcome{Result: probe.Failure, Output: output}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestEndsWithItsContext: the check ends, and so does its connection.
func TestEndsWithItsContext(t *testing.T) {
	for name, script := range map[string]func(net.Conn, func()){
		"silent":               func(c net.Conn, come func()) { answering("")(c); come() },
		"half a status line":   func(c net.Conn, come func()) { answering("HTTP/1.1 20")(c); come() },
		"slow headers":         func(c net.Conn, come func()) { answering("HTTP/1.1 200 OK\r\nX-Slow: ")(c); come() },
		"hints without an end": func(c net.Conn, come func()) { answering("HTTP/1.1 103 Early Hints\r\n\r\n")(c); come() },
		"reads a byte":         func(c net.Conn, come func()) { _, _ = c.Read(make([]byte, 1)); come() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := newDeadline()
			s := listen(t, func(c net.Conn) { script(c, ctx.come) })
			wantFailure(t, s.check(ctx, Config{}), fmt.Sprintf(`Get "http://%s/x": %s`, s.address, noHeaders))
			<-s.gone
		})
	}
}

func TestEndsWhileTLSStalls(t *testing.T) {
	ctx := newDeadline()
	s := listen(t, func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, 5)) // the head of a ClientHello
		ctx.come()
	})
	got := New(Config{}).Check(ctx, Target{URL: parse(t, "https://"+s.address)})
	wantFailure(t, got, fmt.Sprintf(`Get "https://%s": %s`, s.address, noHeaders))
	<-s.gone
}

// TestEndsWhileNobodyAccepts: the kernel opens connections for a process that
// hangs.
func TestEndsWhileNobodyAccepts(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ctx := newDeadline()
	got := New(watching(nil, func(int) { ctx.come() })).Check(ctx, Target{URL: parse(t, "http://"+l.Addr().String())})
	wantFailure(t, got, fmt.Sprintf(`Get "http://%s": %s`, l.Addr(), noHeaders))
}

// TestEndsItsDial: a transport alone would go on, for the sake of later requests.
func TestEndsItsDial(t *testing.T) {
	ctx := newDeadline()
	ended := make(chan struct{})
	got := New(Config{DialContext: func(dial context.Context, _, _ string) (net.Conn, error) {
		defer close(ended)
		ctx.come()
		<-dial.Done()
		return nil, dial.Err()
	}}).Check(ctx, Target{URL: parse(t, "http://192.0.2.1:80/")})
	wantFailure(t, got, `Get "http://192.0.2.1:80/": `+noHeaders)
	<-ended
}

func TestEndsWhileBodyDrips(t *testing.T) {
	ctx := newDeadline()
	s := listen(t, answering("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\na"))
	afterHeaders := watching(func(nth int) {
		if nth == 2 { // the first brought the headers
			ctx.come()
		}
	}, nil)
	wantFailure(t, s.check(ctx, afterHeaders), noBody)
	<-s.gone
}

// TestFailureNeedsNoBody: users learn of the status, not of the slow body.
func TestFailureNeedsNoBody(t *testing.T) {
	s := listen(t, answering("HTTP/1.1 500 Oh\r\nContent-Length: 100\r\n\r\na"))
	wantFailure(t, s.check(t.Context(), Config{}), "HTTP probe failed with statuscode: 500")
	<-s.gone
}

func TestEndsOverHTTP2(t *testing.T) {
	for name, start := range map[string]func(*httptest.Server){"plain": plain, "TLS": secure} {
		t.Run(name, func(t *testing.T) {
			ctx := newDeadline()
			gone := make(chan struct{})
			edit := onlyH2C
			if name == "TLS" {
				edit = offerHTTP2
			}
			at := serve(t, func(_ http.ResponseWriter, r *http.Request) {
				ctx.come()
				<-r.Context().Done()
				close(gone)
			}, edit, start)
			got := New(Config{}).Check(ctx, Target{URL: at, H2C: name == "plain"})
			wantFailure(t, got, fmt.Sprintf("Get %q: %s", at, noHeaders))
			<-gone
		})
	}
}

// TestEndsBeforeHTTP2Begins: the server takes the connection and speaks no word
// of HTTP/2. When time is up just as the client has made its connection ready,
// that one must not stay in a pool: a matter of chance, so there are many tries.
func TestEndsBeforeHTTP2Begins(t *testing.T) {
	for range 50 {
		ctx := newDeadline()
		s := listen(t, func(c net.Conn) {
			_, _ = io.ReadFull(c, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
			ctx.come()
		})
		got := New(Config{}).Check(ctx, Target{URL: parse(t, "http://"+s.address), H2C: true})
		wantFailure(t, got, fmt.Sprintf(`Get "http://%s": %s`, s.address, noHeaders))
		<-s.gone
	}
}

// TestHugeBody: of ten gigabytes as many bytes are read as are told.
func TestHugeBody(t *testing.T) {
	var sent int
	s := listen(t, func(c net.Conn) {
		answering("HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n")(c)
		for n, err := 0, error(nil); err == nil; sent += n {
			n, err = c.Write(make([]byte, 1<<16))
		}
	})
	got := s.check(t.Context(), Config{})
	if got.Result != probe.Success || len(got.Output) != probe.OutputLimit {
		t.Errorf("%v with %d bytes", got.Result, len(got.Output))
	}
	<-s.gone
	if sent > 1<<28 {
		t.Errorf("the server could send %d bytes", sent)
	}
}

func TestBrokenServers(t *testing.T) {
	reset := func(c net.Conn) {
		answering("")(c)
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
	hangUp := func(c net.Conn) { answering("")(c); _ = c.Close() }
	cutOff := func(c net.Conn) {
		answering("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")(c)
		_ = c.(*net.TCPConn).CloseWrite()
	}
	for _, c := range []struct {
		name   string
		script func(net.Conn)
		output string
	}{
		{"reset", reset, "connection reset by peer"},
		{"hang up", hangUp, "EOF"},
		{"cut off", cutOff, "unexpected EOF"},
		{"no HTTP", answering("SSH-2.0-OpenSSH_9.9\r\n"), "malformed HTTP response"},
		{"chunk without a size", answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), "invalid byte in chunk length"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := listen(t, c.script).check(t.Context(), Config{})
			if got.Result != probe.Failure || got.Err != nil || !strings.Contains(got.Output, c.output) {
				t.Errorf("got %+v, want %q", got, c.output)
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	got := New(Config{}).Check(t.Context(), Target{URL: parse(t, "http://"+l.Addr().String()+"/x")})
	wantFailure(t, got, fmt.Sprintf(`Get "http://%s/x": dial tcp %[1]s: connect: connection refused`, l.Addr()))
}
