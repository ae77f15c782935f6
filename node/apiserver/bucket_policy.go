package apiserver

import (
	"math"
	"time"
)

// bucket is a token bucket as a value: rate tokens per second, up to burst.
// The zero time means that it is full.
type bucket struct {
	rate   float64
	burst  float64
	tokens float64
	at     time.Time
}

// almost makes up for what floating point loses between two looks.
const almost = 1 - 1e-6

// at now, with what dripped in since.
func (b bucket) filled(now time.Time) bucket {
	if b.at.IsZero() {
		b.tokens = b.burst
	} else if passed := now.Sub(b.at); passed > 0 {
		b.tokens = min(b.burst, b.tokens+b.rate*passed.Seconds())
	} else {
		return b // a clock that went back gives nothing and takes nothing
	}
	b.at = now
	return b
}

func (b bucket) has() bool { return b.tokens >= almost }

func (b bucket) take() bucket {
	b.tokens = max(0, b.tokens-1)
	return b
}

func (b bucket) give() bucket {
	b.tokens = min(b.burst, b.tokens+1)
	return b
}

// wait is how long it takes until there is a token.
func (b bucket) wait() time.Duration {
	if b.has() {
		return 0
	}
	return time.Duration(math.Ceil((1 - b.tokens) / b.rate * float64(time.Second)))
}

// share is how many requests of a lane go before one of a less urgent lane
// that is waiting too. Heartbeats are so few that they always go first.
const share = 3

// turns remembers who went lately, so that no lane starves.
type turns struct {
	ahead [laneCount]int // how often others went before this waiting lane
}

// next says whose turn it is, given how many wait in each lane; ok is false
// when nobody waits. Lease before node status before all others; of the
// others the more urgent first, but each waits for at most share of them.
func (t turns) next(waiting [laneCount]int) (lane LaneID, after turns, ok bool) {
	lane = laneCount
	for l := range laneCount {
		if waiting[l] == 0 {
			t.ahead[l] = 0
			continue
		}
		switch {
		case lane == laneCount:
			lane = l
		case !lane.heartbeat() && t.ahead[l] >= share && t.ahead[l] > t.ahead[lane]:
			lane = l
		}
	}
	if lane == laneCount {
		return 0, t, false
	}
	for l := range laneCount {
		if waiting[l] > 0 {
			t.ahead[l]++
		}
	}
	t.ahead[lane] = 0
	return lane, t, true
}
