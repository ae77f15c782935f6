// Package clientlogtest tests that who makes requests keeps client-go's log
// lines with its own.
package clientlogtest

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"nodekit.dev/internal/kubeclient/kubeclienttest"
)

// Separate calls speak twice, as for two agents, in bubbles of fake time. Its
// client-go says which of them it is of, and has to say so to that one's log
// only. speak makes a request by the client; ctx ends when it makes a second.
func Separate(t *testing.T, gv schema.GroupVersion, add func(*runtime.Scheme) error, speak func(context.Context, rest.Interface, *slog.Logger)) {
	t.Helper()
	logs := map[string]string{}
	for _, agent := range []string{"agent-one", "agent-two"} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			speak(ctx, kubeclienttest.Client(gv, &server{word: agent, end: cancel}, add), log)
			logs[agent] = out.String()
		})
	}
	for agent, log := range logs {
		if !strings.Contains(log, agent) || strings.Count(log, "Warning: agent-") != 1 {
			t.Errorf("client-go spoke of %s, its log: %s", agent, log)
		}
	}
}

// server refuses all, with a warning that client-go logs.
type server struct {
	word  string
	end   func()
	calls int
}

// RoundTrip answers, or ends it all.
func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	if s.calls++; s.calls > 1 {
		s.end()
		return nil, context.Canceled
	}
	return &http.Response{
		StatusCode: http.StatusNotFound, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}, "Warning": {`299 - "` + s.word + `"`}},
		Body:   io.NopCloser(strings.NewReader(`{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}`)),
	}, nil
}
