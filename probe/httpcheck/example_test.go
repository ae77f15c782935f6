package httpcheck_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"

	"nodekit.dev/probe/httpcheck"
)

// A server that is well, but for one page.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ready" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write([]byte("asked by " + r.UserAgent()))
	}))
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	checker := httpcheck.New(httpcheck.Config{})
	for _, path := range []string{"/healthz", "/ready"} {
		got := checker.Check(context.Background(), httpcheck.Target{URL: at.JoinPath(path)})
		fmt.Println(got.Result, got.Output)
	}
	// Output:
	// success asked by kube-probe/1.37
	// failure HTTP probe failed with statuscode: 503
}
