package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"nodekit.dev/examples/internal/exampletest"
)

func TestProbeOnly(t *testing.T) {
	broken := atomic.Bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if broken.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	tcp := "tcp://" + server.Listener.Addr().String()
	program := exampletest.Run(t, func(ctx context.Context, out io.Writer) error {
		return run(ctx, 10*time.Millisecond, []string{server.URL, tcp}, out)
	})
	program.Await(server.URL + " ready=true")
	program.Await(tcp + " ready=true")
	broken.Store(true)
	program.Await(server.URL + " ready=false HTTP probe failed with statuscode: 503\n")
	program.Stop()
}
