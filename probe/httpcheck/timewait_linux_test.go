package httpcheck

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"

	"nodekit.dev/internal/sockets"
	"nodekit.dev/probe"
)

func port(t *testing.T, at *url.URL) int {
	t.Helper()
	number, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	return number
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
			if n, err := sockets.TimeWait(port(t, at)); n >= 20 || err != nil {
				t.Errorf("%d sockets in TIME_WAIT, %v", n, err)
			}
		})
	}
}
