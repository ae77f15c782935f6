package tcpcheck

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"nodekit.dev/probe"
)

// timeWaits counts sockets in TIME_WAIT (state 06) of a port, on either end.
func timeWaits(port int) (n int) {
	end := fmt.Sprintf(":%04X", port)
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue // no IPv6
		}
		for line := range strings.Lines(string(raw)) {
			f := strings.Fields(line)
			if len(f) > 3 && f[3] == "06" && (strings.HasSuffix(f[1], end) || strings.HasSuffix(f[2], end)) {
				n++
			}
		}
	}
	return n
}

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
			if n := timeWaits(l.Addr().(*net.TCPAddr).Port); n >= 20 {
				t.Errorf("%d sockets in TIME_WAIT", n)
			}
		})
	}
}
