package tcpcheck

import (
	"net"
	"testing"

	"nodekit.dev/internal/sockets"
	"nodekit.dev/probe"
)

// TestNoTimeWaitPilesUp: neither here nor at the server, whose end is on this
// host too.
func TestNoTimeWaitPilesUp(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		t.Run(host, func(t *testing.T) {
			l := listen(t, host)
			done := make(chan struct{})
			go func() {
				defer close(done)
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					_ = conn.Close()
				}
			}()
			for range 500 {
				if got := Check(t.Context(), Target{Address: l.Addr().String()}); got.Result != probe.Success {
					t.Fatalf("%+v", got)
				}
			}
			_ = l.Close()
			<-done
			if n, err := sockets.TimeWait(l.Addr().(*net.TCPAddr).Port); n >= 20 || err != nil {
				t.Errorf("%d sockets in TIME_WAIT, %v", n, err)
			}
		})
	}
}
