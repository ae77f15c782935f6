package backoff

import (
	"fmt"
	"testing"
	"time"
)

var (
	policy = Policy{Base: 10 * time.Second, Max: 300 * time.Second}
	start  = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

func TestDelayDoublesUpToMax(t *testing.T) {
	now, s := start, State{}
	for i, want := range []int{10, 20, 40, 80, 160, 300, 300} {
		s = s.Fail(policy, now, "")
		if s.Delay != time.Duration(want)*time.Second || s.Failures != i+1 {
			t.Fatalf("failure %d: %+v, want %d s", i+1, s, want)
		}
		if got := s.Wait(now.Add(time.Second)); got != s.Delay-time.Second {
			t.Fatalf("wait %v after one second of %v", got, s.Delay)
		}
		now = now.Add(s.Delay)
		if got := s.Wait(now); got != 0 {
			t.Fatalf("wait %v when the delay is over", got)
		}
	}
}

func TestQuietTimeForgets(t *testing.T) {
	cases := []struct {
		name  string
		p     Policy
		quiet time.Duration
		want  time.Duration
	}{
		{"just within twice max", policy, 600 * time.Second, 20 * time.Second},
		{"beyond twice max", policy, 601 * time.Second, 10 * time.Second},
		{"own forget", Policy{Base: time.Second, Max: time.Minute, Forget: 5 * time.Second}, 6 * time.Second, time.Second},
		{"base above max", Policy{Base: time.Hour, Max: time.Minute}, time.Second, time.Minute},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := State{}.Fail(c.p, start, "").Fail(c.p, start.Add(c.quiet), "")
			if s.Delay != c.want {
				t.Fatalf("delay %v, want %v", s.Delay, c.want)
			}
		})
	}
}

func TestMapKeepsKeysApartAndForgets(t *testing.T) {
	m := NewMap[string](policy)
	m.Fail("a", start, "")
	m.Fail("a", start, "")
	m.Fail("b", start, "")
	if a, b := m.Wait("a", start), m.Wait("b", start); a != 20*time.Second || b != 10*time.Second {
		t.Fatalf("a waits %v, b %v", a, b)
	}
	m.Succeed("a")
	if m.Wait("a", start) != 0 || m.Len() != 1 {
		t.Fatal("success did not forget a")
	}
	// A later failure of another key drops b, so the map does not grow.
	m.Fail("c", start.Add(time.Hour), "no route")
	if got := m.Get("c"); got.Note != "no route" || got.Failures != 1 {
		t.Fatalf("state of c: %+v", got)
	}
	if m.Len() != 1 {
		t.Fatalf("%d keys left, want only c", m.Len())
	}
}

func ExampleMap() {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	b := NewMap[string](Policy{Base: 10 * time.Second, Max: 5 * time.Minute})
	fmt.Println(b.Fail("busybox", now, "not found"), b.Fail("busybox", now, "not found"), b.Wait("nginx", now))
	b.Succeed("busybox")
	fmt.Println(b.Wait("busybox", now))
	// Output:
	// 10s 20s 0s
	// 0s
}
