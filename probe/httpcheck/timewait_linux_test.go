package httpcheck

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"nodekit.dev/probe"
)

// timeWaits counts sockets in TIME_WAIT (state 06) of a port, on either end.
func timeWaits(t *testing.T, port string) (n int) {
	t.Helper()
	var number int
	if _, err := fmt.Sscan(port, &number); err != nil {
		t.Fatal(err)
	}
	end := fmt.Sprintf(":%04X", number)
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
// host too, whoever closes first.
func TestNoTimeWaitPilesUp(t *testing.T) {
	empty := func(http.ResponseWriter, *http.Request) {}
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		edit    func(*httptest.Server)
		start   func(*httptest.Server)
		checks  int
	}{
		{"plain", empty, nil, plain, 500},
		{"body", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 100<<10)) }, nil, plain, 500},
		{"failing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, nil, plain, 500},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/next" {
				http.Redirect(w, r, "/next", http.StatusFound)
			}
		}, nil, plain, 250},
		{"TLS", empty, nil, secure, 100},
		{"HTTP/2 over TLS", empty, offerHTTP2, secure, 100},
		{"h2c", empty, onlyH2C, plain, 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := serve(t, c.handler, c.edit, c.start)
			checker := New(Config{})
			for range c.checks {
				got := checker.Check(t.Context(), Target{URL: at, H2C: c.name == "h2c"})
				if (got.Result == probe.Success) != (c.name != "failing") {
					t.Fatalf("%+v", got)
				}
			}
			if n := timeWaits(t, at.Port()); n >= 20 {
				t.Errorf("%d sockets in TIME_WAIT", n)
			}
		})
	}
}
