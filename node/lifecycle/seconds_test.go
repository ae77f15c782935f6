package lifecycle

import (
	"math"
	"testing"
	"time"
)

func TestSeconds(t *testing.T) {
	for in, want := range map[int64]time.Duration{
		math.MinInt64: 0, -1: 0, 0: 0, 30: 30 * time.Second,
		9223372037: longest, math.MaxInt64: longest,
	} {
		if got := Seconds(in); got != want {
			t.Errorf("Seconds(%d) = %v, want %v", in, got, want)
		}
	}
}

// A pod that never wants to be killed is not killed at once.
func TestHugeGraceDoesNotWrapAround(t *testing.T) {
	at := time.Unix(1000, 0)
	stop := Stop{Reason: StopDeleted, At: at, Grace: Seconds(math.MaxInt64)}
	if !stop.KillAt().After(at.AddDate(10, 0, 0)) {
		t.Errorf("killed at %v", stop.KillAt())
	}
}
