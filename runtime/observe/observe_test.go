package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nodekit.dev/runtime"
)

var errGone = errors.New("the runtime is gone")

func TestRelistHintsAtWhatChanged(t *testing.T) {
	s := newSource("a", "b")
	run(t, Config{}, s, func(b *bench) {
		b.want("start", "* a b") // the runtime became ready, and both pods are new
		b.pass(time.Minute)
		b.want("nothing happened", "")
		s.put("b", runtime.ContainerExited)
		b.pass(11 * time.Second)
		b.want("b exited", "b")
		s.put("c", runtime.ContainerCreated)
		b.pass(3 * time.Second) // it lists more often after a change
		b.want("c came", "c")
		s.set(func() { delete(s.pods, "a") })
		b.pass(3 * time.Second)
		b.want("a went", "a")
	})
}

func TestRelistSlowsDownAndSpeedsUp(t *testing.T) {
	s := newSource("a")
	run(t, Config{}, s, func(b *bench) {
		b.pass(2 * time.Minute)
		lists := b.since(&s.lists)
		for i := 1; i < len(lists); i++ {
			gap := lists[i] - lists[i-1]
			if i > 2 && gap < lists[i-1]-lists[i-2] || gap < 1 || gap > 10 {
				t.Errorf("list %d came %.2f s after the one before", i, gap)
			}
		}
		if last := len(lists) - 1; lists[last]-lists[last-1] != 10 {
			t.Errorf("with nothing to see, the last list came after %.2f s, want 10", lists[last]-lists[last-1])
		}
		before := time.Since(b.start).Seconds()
		if _, err := b.o.Look(b.t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		b.pass(time.Second)
		if lists := b.since(&s.lists); len(lists) != 1 || lists[0] > before+1 {
			t.Errorf("a look at %.2f s was followed by lists at %v, want one within a second", before, lists)
		}
	})
}

func TestNextRelist(t *testing.T) {
	cfg := DefaultConfig()
	for _, tt := range []struct {
		last               time.Duration
		changed, streaming bool
		want               time.Duration
	}{
		{time.Second, false, false, 1250 * time.Millisecond},
		{9 * time.Second, false, false, 10 * time.Second},
		{time.Minute, false, false, 10 * time.Second},
		{9 * time.Second, true, false, time.Second},
		{time.Second, true, true, 2 * time.Second},
		{time.Minute, false, true, time.Minute},
	} {
		if got := nextRelist(cfg, tt.last, tt.changed, tt.streaming); got != tt.want {
			t.Errorf("nextRelist(%v, changed %v, streaming %v) = %v, want %v", tt.last, tt.changed, tt.streaming, got, tt.want)
		}
	}
}

func TestEventsAreHintsAtOnce(t *testing.T) {
	s := newSource("a", "b")
	run(t, Config{Events: true}, s, func(b *bench) {
		b.pass(10 * time.Minute)
		b.taken()
		lists := b.since(&s.lists)
		if n := len(lists); lists[n-1]-lists[n-2] != 60 {
			t.Errorf("lists at %v; want one each 60 s in the end", lists)
		}
		s.put("a", runtime.ContainerExited)
		s.event("a")
		b.want("event", "a")
		s.put("b", runtime.ContainerExited) // and its event is lost
		b.pass(time.Minute)
		if got := b.taken(); !strings.Contains(got, "b") {
			t.Errorf("the lost event was not made up for within a minute: hints %q", got)
		}
	})
}

func TestEventsAreOpenedAgain(t *testing.T) {
	s := newSource("a")
	run(t, Config{Events: true}, s, func(b *bench) {
		b.pass(time.Minute)
		b.taken()
		b.since(&s.opens)
		s.set(func() { s.refuse = true; s.cut() })
		broke := time.Since(b.start).Seconds()
		b.pass(30 * time.Second)
		b.want("runtime away", "")
		opens := b.since(&s.opens)
		var waits []string
		for _, at := range opens {
			waits = append(waits, fmt.Sprintf("%.1f", at-broke))
			broke = at
		}
		if got, want := strings.Join(waits, " "), "0.1 0.2 0.4 0.8 1.6 3.2 5.0 5.0 5.0 5.0"; got != want {
			t.Errorf("opened after %s, want %s", got, want)
		}
		s.put("a", runtime.ContainerExited)
		s.set(func() { s.refuse = false })
		b.pass(6 * time.Second)
		if got := b.taken(); got != "* a" {
			t.Errorf("after the runtime came back: hints %q, want a look at all and at a", got)
		}
		s.event("a")
		b.want("event on the new stream", "a")
		lists := b.since(&s.lists)
		b.pass(10 * time.Minute)
		if more := b.since(&s.lists); len(more) > 15 {
			t.Errorf("lists at %v, then at %v: the slow relist is not back", lists, more)
		}
	})
}

func TestEventsAreOpenedAsSoonAsTheRuntimeIsBack(t *testing.T) {
	s := newSource("a")
	var logs strings.Builder
	run(t, Config{Events: true, Log: textLog(&logs)}, s, func(b *bench) {
		b.pass(time.Minute)
		s.set(func() { s.refuse, s.statusErr = true, errGone; s.cut() })
		b.pass(30 * time.Second)
		b.since(&s.opens)
		s.set(func() { s.refuse, s.statusErr = false, nil })
		b.pass(1100 * time.Millisecond) // health is asked for each second now
		if opens := b.since(&s.opens); len(opens) != 1 {
			t.Errorf("the stream was opened at %v, want once", opens)
		}
	})
	if n := strings.Count(logs.String(), "stream ended"); n != 1 {
		t.Errorf("one break was logged %d times:\n%s", n, &logs)
	}
}

func TestRuntimeWithoutEvents(t *testing.T) {
	s := newSource("a")
	s.noEvents = true
	run(t, Config{Events: true}, s, func(b *bench) {
		b.pass(10 * time.Minute)
		if opens := b.since(&s.opens); len(opens) > 2 {
			t.Errorf("the stream was tried at %v, though the runtime has none", opens)
		}
		b.taken()
		s.put("a", runtime.ContainerExited)
		b.pass(11 * time.Second)
		b.want("relist goes on", "a")
		s.set(func() { s.noEvents = false; s.status.Version = "2" }) // upgraded
		b.pass(6 * time.Second)
		if opens := b.since(&s.opens); len(opens) != 1 {
			t.Errorf("the stream was tried %d times after the upgrade, want once", len(opens))
		}
		b.want("upgrade", "*")
		s.event("a")
		b.want("event", "a")
	})
}

func TestEventsOff(t *testing.T) {
	s := newSource("a")
	run(t, Config{Events: false}, s, func(b *bench) {
		b.pass(time.Minute)
		if opens := b.since(&s.opens); len(opens) != 0 {
			t.Errorf("the stream was opened at %v", opens)
		}
	})
}

func TestEventsWithoutAPodAreOneList(t *testing.T) {
	s := newSource("a")
	run(t, Config{Events: true}, s, func(b *bench) {
		b.pass(10*time.Minute + time.Second)
		b.taken()
		b.since(&s.lists)
		s.put("a", runtime.ContainerExited)
		for range 100 {
			s.event("")
		}
		b.pass(500 * time.Millisecond)
		b.want("events of an unknown pod", "a")
		if lists := b.since(&s.lists); len(lists) > 2 {
			t.Errorf("100 events gave lists at %v", lists)
		}
	})
}

func TestHealth(t *testing.T) {
	s := newSource()
	s.status.NetworkReady = false
	s.status.Reason = "NetworkPluginNotReady"
	run(t, Config{}, s, func(b *bench) {
		b.want("the runtime is ready", "*")
		if got := b.o.Status(); !got.RuntimeReady || got.NetworkReady || got.Reason != "NetworkPluginNotReady" {
			t.Errorf("Status = %+v", got)
		}
		// At the start both the first list and the loop may ask, in either order.
		b.since(&s.asked)
		b.pass(10500 * time.Millisecond)
		if n := len(b.since(&s.asked)); n != 10 {
			t.Errorf("a runtime without network was asked %d times in 10.5 s, want 10", n)
		}
		s.set(func() { s.status.NetworkReady, s.status.Reason = true, "" })
		b.pass(time.Second)
		b.want("network", "*")
		b.since(&s.asked)
		b.pass(60 * time.Second)
		if n := len(b.since(&s.asked)); n != 12 {
			t.Errorf("a ready runtime was asked %d times in 60 s, want 12", n)
		}
		s.set(func() { s.statusErr = errGone })
		b.pass(5 * time.Second)
		b.want("gone", "*")
		got := b.o.Status()
		if got.RuntimeReady || !got.NetworkReady || got.Reason != reasonUnanswered || got.Message != errGone.Error() || got.Name != "mem" {
			t.Errorf("Status of a runtime that is gone = %+v", got)
		}
		s.set(func() { s.statusErr = nil })
		b.pass(time.Second)
		b.want("back", "*")
	})
}

func TestHealthIsToldWhenItChanges(t *testing.T) {
	s := newSource()
	var told []runtime.Status
	run(t, Config{Trace: Trace{Health: func(now runtime.Status) { told = append(told, now) }}}, s, func(b *bench) {
		wantTold := func(when string, n int) {
			if len(told) != n {
				b.t.Fatalf("%s: told %d times, want %d", when, len(told), n)
			}
		}
		began := time.Now()
		wantTold("at start", 1)
		b.pass(5 * time.Second)
		wantTold("nothing changed", 1)
		if at := b.o.Status().ReadyAt; at.Sub(began) != 5*time.Second {
			b.t.Errorf("last ready %v after the start, want 5 s", at.Sub(began))
		}
		s.set(func() { s.statusErr = errors.New("no answer") })
		b.pass(10 * time.Second)
		wantTold("no answer", 2)
		if now := b.o.Status(); now.RuntimeReady || now.ReadyAt.Sub(began) != 5*time.Second {
			b.t.Errorf("without an answer: %+v", now)
		}
		s.set(func() { s.statusErr = nil; s.status.Features = &runtime.Features{MountOptions: true} })
		b.pass(time.Second)
		wantTold("back, and able to do more", 3)
		if !told[2].RuntimeReady || !told[2].Features.MountOptions {
			b.t.Errorf("told %+v", told[2])
		}
	})
}

func TestStatusBeforeRun(t *testing.T) {
	o, err := New(DefaultConfig(), newSource())
	if err != nil {
		t.Fatal(err)
	}
	if got := o.Status(); got.RuntimeReady || got.NetworkReady || got.Reason != reasonNotRead {
		t.Errorf("Status = %+v", got)
	}
}

func TestFirstListKnowsTheRuntime(t *testing.T) {
	s := newSource("a")
	o, err := New(DefaultConfig(), s)
	if err != nil {
		t.Fatal(err)
	}
	o.health.set(runtime.Status{Reason: reasonUnanswered}) // it was down when the agent started
	for range 2 {
		if _, err := o.List(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := o.Status().Name; got != "mem" {
		t.Errorf("after a list the runtime is %q", got)
	}
	if len(s.asked) != 1 {
		t.Errorf("two lists asked for the status %d times", len(s.asked))
	}
}

func TestHungPodIsLeftAlone(t *testing.T) {
	s := newSource("a", "b")
	var told []string
	trace := Trace{Quarantined: func(uid string, wait time.Duration) { told = append(told, fmt.Sprint(uid, " ", wait)) }}
	run(t, Config{Trace: trace}, s, func(b *bench) {
		s.set(func() { s.hung["a"] = true })
		var hung *QuarantineError
		for i, wait := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second} {
			began := time.Now()
			_, err := b.o.Look(b.t.Context(), "a")
			if !errors.As(err, &hung) || hung.RetryAfter() != wait || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("look %d = %v; want a quarantine of %v", i, err, wait)
			}
			if took := time.Since(began); took != 20*time.Second {
				t.Errorf("look %d took %v, want 20 s", i, took)
			}
			if _, err := b.o.Look(b.t.Context(), "a"); !errors.As(err, &hung) || time.Since(began) != 20*time.Second {
				t.Errorf("the look after look %d = %v; want it to fail at once", i, err)
			}
			if p, err := b.o.Look(b.t.Context(), "b"); err != nil || p.UID != "b" {
				t.Errorf("look at another pod: %+v, %v", p, err)
			}
			b.taken()
			b.pass(wait - time.Second)
			b.want("in quarantine", "")
			b.pass(6 * time.Second)
			b.want("over", "a")
		}
		s.set(func() { s.hung["a"] = false })
		if p, err := b.o.Look(b.t.Context(), "a"); err != nil || p.UID != "a" {
			t.Errorf("look at a pod that answers again: %+v, %v", p, err)
		}
		s.set(func() { s.hung["a"] = true })
		if _, err := b.o.Look(b.t.Context(), "a"); !errors.As(err, &hung) || hung.Wait != 10*time.Second {
			t.Errorf("after it answered: %v; want the shortest quarantine", err)
		}
		if want := []string{"a 10s", "a 20s", "a 40s", "a 10s"}; !slices.Equal(told, want) {
			t.Errorf("told of %q, want %q", told, want)
		}
	})
}

func TestNobodyWaitsForAHungPod(t *testing.T) {
	s := newSource("a", "b")
	s.hung["a"] = true
	run(t, Config{}, s, func(b *bench) {
		go b.o.Look(b.t.Context(), "a")
		b.taken()
		s.put("b", runtime.ContainerExited)
		b.pass(2 * time.Second)
		b.want("while a look hangs", "b")
	})
}

func TestCancelledLookIsNoQuarantine(t *testing.T) {
	s := newSource("a")
	s.hung["a"] = true
	run(t, Config{}, s, func(b *bench) {
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Second)
		defer cancel()
		var hung *QuarantineError
		if _, err := b.o.Look(ctx, "a"); err == nil || errors.As(err, &hung) {
			t.Errorf("Look = %v", err)
		}
		s.set(func() { s.hung["a"] = false })
		if _, err := b.o.Look(b.t.Context(), "a"); err != nil {
			t.Errorf("the next Look = %v", err)
		}
	})
}

func TestForgottenQuarantine(t *testing.T) {
	s := newSource("a")
	s.hung["a"] = true
	run(t, Config{}, s, func(b *bench) {
		b.o.Look(b.t.Context(), "a")
		b.pass(10 * time.Minute)
		if n := len(b.o.quarantine.pods); n != 0 {
			t.Errorf("%d pods are still remembered that nobody asks for", n)
		}
	})
}

func TestHungListHoldsUpNothingElse(t *testing.T) {
	s := newSource("a")
	run(t, Config{Events: true}, s, func(b *bench) {
		b.pass(time.Second)
		s.set(func() { s.hung["list"], s.status.NetworkReady = true, false })
		b.taken()
		b.pass(5 * time.Second)
		b.want("health", "*")
		s.event("a")
		b.want("event", "a")
		s.set(func() { s.hung["list"] = false })
		s.put("b", runtime.ContainerRunning)
		b.pass(65 * time.Second)
		if got := b.taken(); !strings.Contains(got, "b") {
			t.Errorf("after the list answers again: hints %q", got)
		}
	})
}

func TestFailingListIsLoggedOnce(t *testing.T) {
	s := newSource("a")
	s.listErr = errGone
	var logs strings.Builder
	run(t, Config{Log: textLog(&logs)}, s, func(b *bench) {
		b.pass(time.Minute)
		s.set(func() { s.listErr = nil })
		b.pass(11 * time.Second)
		if !strings.Contains(b.taken(), "a") {
			t.Error("no hint at the pod when the list works again")
		}
	})
	if n := strings.Count(logs.String(), "cannot list"); n != 1 || !strings.Contains(logs.String(), "can be listed again") {
		t.Errorf("logged:\n%s", &logs)
	}
}

func TestRunTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, err := New(DefaultConfig(), newSource())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := o.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
		if err := o.Run(t.Context()); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("second Run = %v", err)
		}
	})
}

func TestSourceThatPanicsIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, err := New(Config{}, panicky{newSource()})
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "runtime-relist: panic: boom") {
			t.Errorf("Run = %v", err)
		}
	})
}

type panicky struct{ *source }

func (panicky) ListPods(context.Context) ([]runtime.Pod, error) { panic("boom") }

func TestConfig(t *testing.T) {
	if err := (Config{}).Validate(); err != nil {
		t.Errorf("the zero Config: %v", err)
	}
	if !DefaultConfig().Events {
		t.Error("events are off by default")
	}
	_, err := New(Config{LookTimeout: -1, RelistMin: time.Minute, QuarantineMin: time.Hour}, newSource())
	for _, want := range []string{"LookTimeout: -1ns", "RelistMax: 10s", "QuarantineMax: 2m0s"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v; want %q in it", err, want)
		}
	}
	if _, err := New(Config{}, nil); err == nil {
		t.Error("New takes no source for a source")
	}
}

func TestFingerprint(t *testing.T) {
	pod := func(change func(*runtime.Pod)) uint64 {
		p := runtime.Pod{
			Sandboxes:  []runtime.Sandbox{{ID: "s", Ready: true}},
			Containers: []runtime.Container{{ID: "c", State: runtime.ContainerRunning}},
		}
		change(&p)
		return fingerprint(p)
	}
	same := pod(func(*runtime.Pod) {})
	for name, other := range map[string]uint64{
		"sandbox ID":        pod(func(p *runtime.Pod) { p.Sandboxes[0].ID = "t" }),
		"sandbox not ready": pod(func(p *runtime.Pod) { p.Sandboxes[0].Ready = false }),
		"no sandbox":        pod(func(p *runtime.Pod) { p.Sandboxes = nil }),
		"container ID":      pod(func(p *runtime.Pod) { p.Containers[0].ID = "d" }),
		"container state":   pod(func(p *runtime.Pod) { p.Containers[0].State = runtime.ContainerExited }),
		"no container":      pod(func(p *runtime.Pod) { p.Containers = nil }),
	} {
		if other == same {
			t.Errorf("%s does not show in the fingerprint", name)
		}
	}
	if pod(func(*runtime.Pod) {}) != same {
		t.Error("equal pods have different fingerprints")
	}
}
