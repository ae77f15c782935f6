package apiserver

import (
	"testing"
	"time"
)

func TestBucketFills(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	after := func(d time.Duration) time.Time { return start.Add(d) }
	empty := bucket{rate: 10, burst: 5, at: start}
	for _, c := range []struct {
		name   string
		bucket bucket
		now    time.Time
		tokens float64
		wait   time.Duration
	}{
		{"new is full", bucket{rate: 10, burst: 5}, start, 5, 0},
		{"empty", empty, start, 0, 100 * time.Millisecond},
		{"half a token", empty, after(50 * time.Millisecond), 0.5, 50 * time.Millisecond},
		{"one token", empty, after(100 * time.Millisecond), 1, 0},
		{"no more than burst", empty, after(time.Hour), 5, 0},
		{"clock went back", empty, after(-time.Hour), 0, 100 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := c.bucket.filled(c.now)
			if b.tokens != c.tokens || b.wait() != c.wait || b.has() != (c.wait == 0) {
				t.Fatalf("%+v, wait %v, has %v; want %v tokens, wait %v", b, b.wait(), b.has(), c.tokens, c.wait)
			}
		})
	}
	if b := (bucket{rate: 1, burst: 2, tokens: 2}).give(); b.tokens != 2 {
		t.Fatalf("a token given back overflows: %+v", b)
	}
}

// A wait that was slept through must be enough, whatever floating point says.
func TestBucketWaitIsEnough(t *testing.T) {
	for _, rate := range []float64{0.1, 1.0 / 3, 3, 7, 50, 1e6} {
		b := bucket{rate: rate, burst: 1, at: time.Unix(0, 0)}
		for range 1000 {
			if b = b.filled(b.at.Add(b.wait())); !b.has() {
				t.Fatalf("rate %v: %+v has no token after its wait", rate, b)
			}
			b = b.take()
		}
	}
}

func TestTurns(t *testing.T) {
	const lease, node, pod, read = LaneLease, LaneNodeStatus, LanePodStatus, LaneRead
	for _, c := range []struct {
		name    string
		waiting [laneCount]int
		want    []LaneID
	}{
		{"nobody", [laneCount]int{}, nil},
		{"by urgency", [laneCount]int{lease: 1, node: 1, pod: 1, read: 1}, []LaneID{lease, node, pod, read}},
		{"reads are not starved", [laneCount]int{pod: 7, read: 2}, []LaneID{pod, pod, pod, read, pod, pod, pod, read, pod}},
		{"heartbeats go before all", [laneCount]int{lease: 5, read: 1}, []LaneID{lease, lease, lease, lease, lease, read}},
		{"one lane", [laneCount]int{read: 3}, []LaneID{read, read, read}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var turns turns
			var got []LaneID
			for {
				lane, after, ok := turns.next(c.waiting)
				if !ok {
					break
				}
				turns = after
				c.waiting[lane]--
				got = append(got, lane)
			}
			if len(got) != len(c.want) {
				t.Fatalf("order %v, want %v", got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Fatalf("order %v, want %v", got, c.want)
				}
			}
		})
	}
}
