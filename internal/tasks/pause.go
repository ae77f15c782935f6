package tasks

import (
	"context"
	"time"
)

// Pause waits for that long, or until ctx ends, which is its error.
func Pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
