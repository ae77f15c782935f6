package app

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// The addresses of a machine that moves are followed, but not looked up each
// second.
func TestFollowIPs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks, answer := 0, []string(nil)
		look := func(context.Context, string) ([]string, error) {
			looks++
			if answer == nil {
				return nil, errors.New("no network")
			}
			return answer, nil
		}
		ask := followIPs("", 10*time.Second, look, slog.New(slog.DiscardHandler))
		for i, step := range []struct {
			after  time.Duration
			answer []string
			want   []string
			looks  int
		}{
			{0, nil, nil, 1},
			{time.Second, []string{"10.0.0.1"}, []string{"10.0.0.1"}, 2},
			{time.Second, []string{"10.0.0.2"}, []string{"10.0.0.1"}, 2},
			{9 * time.Second, []string{"10.0.0.2"}, []string{"10.0.0.2"}, 3},
			{10 * time.Second, nil, nil, 4},
			{time.Second, []string{"10.0.0.3"}, []string{"10.0.0.3"}, 5},
		} {
			time.Sleep(step.after) // fake time
			answer = step.answer
			if got := ask(t.Context()); !slices.Equal(got, step.want) || looks != step.looks {
				t.Errorf("%d: %v after %d looks, want %v after %d", i, got, looks, step.want, step.looks)
			}
		}
	})
}
