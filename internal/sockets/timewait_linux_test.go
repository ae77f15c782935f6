package sockets

import (
	"net"
	"testing"
)

// TestTimeWait: who closes first is in TIME_WAIT, and is seen.
func TestTimeWait(t *testing.T) {
	l, port := freshListener(t)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := TimeWait(port); n != 0 || err != nil {
		t.Fatalf("%d, %v while it is open", n, err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Read(make([]byte, 1)); err == nil { // its end has come
		t.Error("read something")
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	n, err := TimeWait(port)
	all, allErr := TimeWait(0)
	if n != 1 || err != nil || all < n || allErr != nil {
		t.Errorf("%d and %d, %v, %v", n, all, err, allErr)
	}
}

// freshListener listens on a port of which nobody's connection is in TIME_WAIT:
// the kernel hands out ports that others on the machine have just left.
func freshListener(t *testing.T) (l net.Listener, port int) {
	t.Helper()
	for range 100 {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		port := l.Addr().(*net.TCPAddr).Port
		if n, err := TimeWait(port); err != nil {
			t.Fatal(err)
		} else if n == 0 {
			return l, port
		}
	}
	t.Fatal("100 ports, each with connections in TIME_WAIT")
	return nil, 0
}
