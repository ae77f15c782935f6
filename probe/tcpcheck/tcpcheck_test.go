package tcpcheck

import (
	"context"
	"net"
	"strings"
	"testing"

	"nodekit.dev/probe"
)

func TestCheck(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", host+":0")
		if err != nil {
			t.Skipf("%s: %v", host, err)
		}
		at := l.Addr().String()
		if got := Check(t.Context(), Target{Address: at}); got.Result != probe.Success {
			t.Errorf("%s: %+v", at, got)
		}
		_ = l.Close()
		got := Check(t.Context(), Target{Address: at})
		if got.Result != probe.Failure || !strings.HasPrefix(got.Output, "dial tcp "+at+": ") {
			t.Errorf("closed %s: %+v", at, got)
		}
	}
}

func TestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := Check(ctx, Target{Address: "127.0.0.1:1"})
	if got.Result != probe.Failure || got.Output == "" {
		t.Errorf("%+v", got)
	}
}
