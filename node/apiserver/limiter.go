package apiserver

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// limiter hands out the tokens of one bucket, to the most urgent lane first
// and within a lane in order of arrival. It has no goroutine: a timer is set
// while somebody waits.
type limiter struct {
	mu      sync.Mutex
	bucket  bucket
	turns   turns
	waiting [laneCount][]chan struct{} // closed with a token
	timer   *time.Timer
	// throttled may be nil; it is called without the lock.
	throttled func(LaneID, time.Duration)
}

// newLimiter returns nil, which limits nothing, for a rate of 0 or less.
func newLimiter(qps float64, burst int, throttled func(LaneID, time.Duration)) *limiter {
	if qps <= 0 {
		return nil
	}
	return &limiter{bucket: bucket{rate: qps, burst: float64(burst)}, throttled: throttled}
}

// lane is the limiter as client-go wants it; nil where nothing is limited.
func (l *limiter) lane(id LaneID) flowcontrol.RateLimiter {
	if l == nil {
		return nil
	}
	return laneLimiter{l, id}
}

// try takes a token if there is one and nobody waits.
func (l *limiter) try() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tryLocked()
}

func (l *limiter) tryLocked() bool {
	l.bucket = l.bucket.filled(time.Now())
	if !l.bucket.has() || l.counts() != [laneCount]int{} {
		return false
	}
	l.bucket = l.bucket.take()
	return true
}

// wait returns true with a token, false when done was closed before.
func (l *limiter) wait(done <-chan struct{}, lane LaneID) bool {
	l.mu.Lock()
	if l.tryLocked() {
		l.mu.Unlock()
		return true
	}
	turn := make(chan struct{})
	l.waiting[lane] = append(l.waiting[lane], turn)
	l.dispatch()
	l.mu.Unlock()

	select {
	case <-turn:
		return true
	case <-done:
		l.leave(lane, turn)
		return false
	}
}

// leave takes a waiter out; if it was given a token meanwhile, others get it.
func (l *limiter) leave(lane LaneID, turn chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting[lane], turn); i >= 0 {
		l.waiting[lane] = slices.Delete(l.waiting[lane], i, i+1)
		return
	}
	l.bucket = l.bucket.give()
	l.dispatch()
}

// dispatch gives out what tokens there are, and comes back when there is the
// next one. It is called with the lock.
func (l *limiter) dispatch() {
	l.bucket = l.bucket.filled(time.Now())
	for l.bucket.has() {
		lane, after, ok := l.turns.next(l.counts())
		l.turns = after
		if !ok {
			return
		}
		l.bucket = l.bucket.take()
		close(l.waiting[lane][0])
		l.waiting[lane][0] = nil
		l.waiting[lane] = l.waiting[lane][1:]
	}
	if l.counts() == [laneCount]int{} {
		return
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	l.timer = time.AfterFunc(l.bucket.wait(), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.dispatch()
	})
}

func (l *limiter) counts() (n [laneCount]int) {
	for lane, queue := range l.waiting {
		n[lane] = len(queue)
	}
	return n
}

// laneLimiter is one lane of a limiter as a flowcontrol.RateLimiter.
type laneLimiter struct {
	limiter *limiter
	lane    LaneID
}

func (l laneLimiter) TryAccept() bool { return l.limiter.try() }
func (l laneLimiter) Accept()         { l.limiter.wait(nil, l.lane) }
func (l laneLimiter) Stop()           {}
func (l laneLimiter) QPS() float32    { return float32(l.limiter.bucket.rate) }

func (l laneLimiter) Wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	start := time.Now()
	if !l.limiter.wait(ctx.Done(), l.lane) {
		return context.Cause(ctx)
	}
	if l.limiter.throttled != nil {
		l.limiter.throttled(l.lane, time.Since(start))
	}
	return nil
}
