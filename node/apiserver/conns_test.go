package apiserver

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A peer that takes nothing is given up by the kernel, and whoever asked is
// told, so that the other connections are looked at as well.
func TestKernelGivesUp(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	died := make(chan struct{}, 1)
	d := newDialer(nil)
	d.patience, d.died = 100*time.Millisecond, func() { died <- struct{}{} }
	c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	deaf, err := l.Accept() // reads nothing
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	if _, err := io.Copy(c, endless{}); !errors.Is(err, unix.ETIMEDOUT) {
		t.Fatalf("writing to a peer that takes nothing: %v", err)
	}
	<-died
}

// endless is a stream without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// The stock times with HTTP/2; DISABLE_HTTP2 leaves the kernel's.
func TestAckPatience(t *testing.T) {
	for _, disabled := range []bool{false, true} {
		api := newFakeAPI(t, nil)
		cfg := api.config()
		cfg.HTTP2.Disabled = disabled
		client := mustNew(t, cfg)
		for _, d := range []*dialer{client.heartbeat.dialer, client.rest.dialer} {
			c, err := d.DialContext(t.Context(), "tcp", api.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			want := 10_000
			if disabled {
				want = 0
			}
			if got := userTimeout(t, c.(*conn).Conn.(*net.TCPConn)); got != want {
				t.Errorf("HTTP/2 disabled %v: TCP_USER_TIMEOUT is %d ms, want %d", disabled, got, want)
			}
			c.Close()
		}
	}
}

func userTimeout(t *testing.T, c *net.TCPConn) (ms int) {
	socket, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = socket.Control(func(fd uintptr) { ms, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) })
	if err != nil {
		t.Fatal(err)
	}
	return ms
}
