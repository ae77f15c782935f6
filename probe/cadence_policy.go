package probe

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// restoreSpread is the time over which the first checks of all restored
// containers are spread.
const restoreSpread = time.Second

// checkTimes are when one check was due, begun and done.
type checkTimes struct{ due, began, ended time.Time }

// began is when a container started by the clock that never jumps: at most now.
// Not known is now.
func began(startedAt, now time.Time) time.Time {
	if startedAt.IsZero() {
		return now
	}
	return now.Add(-max(0, now.Sub(startedAt)))
}

// firstCheck is when a probe is first checked, once nothing else holds it back:
// now, or when the delay after the container's start is over. Wait is for
// containers that are restored.
func firstCheck(s *Spec, began, now time.Time, wait time.Duration) time.Time {
	return later(now.Add(wait), began.Add(s.InitialDelay))
}

// nextCheck is when a probe is checked again after a check with that result.
// Gap is the period, or less once (see spreadGap).
//
// Checks keep their phase. One that failed counts from when it began, so that
// n failures never come in less time than the user asked for. Ticks that pass
// while a check runs are left out; one that has only just passed is not.
func nextCheck(s *Spec, at checkTimes, r Result, gap time.Duration) time.Time {
	next := at.due
	if r == Failure {
		next = at.began
	}
	next = next.Add(gap)
	if missed := at.ended.Sub(next) - s.Period/10; missed > 0 {
		next = next.Add((missed + s.Period - 1) / s.Period * s.Period)
	}
	return next
}

// spreadGap is the gap after which a probe's phase is as far from others' as
// its share says.
func spreadGap(s *Spec, share float64) time.Duration {
	return time.Duration(share * float64(s.Period))
}

// shareOf is a number from 0 up to 1 that is always the same for one probe, and
// evenly spread over many.
func shareOf(uid, name string, t Type) float64 {
	sum := sha256.Sum256([]byte(uid + "/" + name + "/" + string(t)))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
