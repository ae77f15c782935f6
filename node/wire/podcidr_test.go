package wire_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nodekit.dev/node/wire"
)

// A runtime that is not there yet gets the pod CIDR when it comes, and one line
// in the log tells of the wait.
func TestTellPodCIDR(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		var tries int
		var got string
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := wire.TellPodCIDR("10.8.0.0/24", func(_ context.Context, cidr string) error {
			if tries++; tries < 4 {
				return errors.New("no such socket")
			}
			got = cidr
			return nil
		}, slog.New(slog.NewTextHandler(&logged, nil)))(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || got != "10.8.0.0/24" || tries != 4 {
			t.Errorf("%v, told %q in %d tries", err, got, tries)
		}
		if n := strings.Count(logged.String(), "no such socket"); n != 1 {
			t.Errorf("%d lines tell of it:\n%s", n, &logged)
		}
	})
}
