package probe

import (
	"context"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestAtRest: 10,000 probes need no goroutine each.
func TestAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checks := atomic.Int64{}
		m, err := New(Config{Checks: map[Kind]Check{TCPSocket: func(context.Context, Target) Outcome {
			checks.Add(1)
			return Outcome{Result: Success}
		}}})
		if err != nil {
			t.Fatal(err)
		}
		before := runtime.NumGoroutine()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- m.Run(ctx) }()
		for i := range 10_000 {
			if _, err := m.Watch(Container{UID: strconv.Itoa(i), Name: "c", Readiness: every(10 * time.Second)}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		time.Sleep(9 * time.Second) // fake time
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > 3 {
			t.Errorf("%d goroutines at rest", n)
		}
		if n := checks.Load(); n < 10_000 {
			t.Errorf("%d checks", n)
		}
		cancel()
		<-done // and the bubble wants every goroutine to end
	})
}

// BenchmarkTimeline takes the first of 10,000 probes and puts it back a period
// later.
func BenchmarkTimeline(b *testing.B) {
	var line timeline
	now := time.Now()
	for i := range 10_000 {
		line.add(&prober{due: now.Add(time.Duration(i) * time.Millisecond)})
	}
	b.ReportAllocs()
	for b.Loop() {
		p := line.popDue(line[0].due)
		p.due = p.due.Add(10 * time.Second)
		line.add(p)
	}
}

// BenchmarkCheck is one check of 10,000 probes, with all that is around it but
// the timer and the goroutine.
func BenchmarkCheck(b *testing.B) {
	m, err := New(Config{Checks: map[Kind]Check{TCPSocket: func(context.Context, Target) Outcome { return Outcome{Result: Success} }}})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 10_000 {
		if _, err := m.Watch(Container{UID: strconv.Itoa(i), Name: "c", Readiness: every(10 * time.Second)}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		p := m.timeline.popDue(m.timeline[0].due)
		p.place = running
		m.check(b.Context(), p)
	}
}
