package probe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestForgetWhileACheckRuns: its context ends, and its result is dropped.
func TestForgetWhileACheckRuns(t *testing.T) {
	for name, forget := range map[string]func(*rig){
		"one": func(r *rig) { r.Forget("uid", "c") },
		"pod": func(r *rig) { r.ForgetPod("uid") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(r *rig) {
				r.answer("c Liveness", answer{takes: 800 * time.Millisecond})
				r.watch(Container{Name: "c", ID: "1", Liveness: every(time.Second)})
				r.pass(100 * time.Millisecond)
				forget(r)
				r.pass(10 * time.Second)
				r.want("0s c Liveness", "0s c/1, 100ms c forgotten")
				if len(r.checked) != 0 || len(r.pods) != 0 || len(r.Saved()) != 0 {
					t.Errorf("checked %v, pods %v, saved %v", r.checked, r.pods, r.Saved())
				}
			})
		})
	}
}

// TestANewRunWhileACheckRuns: the result of the old run does not count for the new.
func TestANewRunWhileACheckRuns(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		r.answer("c Liveness", answer{result: Failure, takes: 800 * time.Millisecond, deaf: true}, good)
		r.watch(Container{Name: "c", ID: "1", Liveness: every(time.Hour)})
		r.pass(100 * time.Millisecond)
		r.watch(Container{Name: "c", ID: "2", Liveness: every(time.Hour)})
		r.pass(time.Second)
		r.want("0s c Liveness, 100ms c Liveness", "0s c/1, 100ms c/2")
	})
}

func TestStopping(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		slow := answer{result: Failure, takes: 800 * time.Millisecond, deaf: true}
		r.answer("c Liveness", slow)
		r.answer("d Startup", slow)
		r.answer("c Readiness", bad)
		r.watch(Container{Name: "c", ID: "1", Liveness: every(time.Second), Readiness: every(time.Second)})
		r.watch(Container{Name: "d", ID: "1", Startup: every(time.Second)})
		r.pass(100 * time.Millisecond)
		r.ignore(true, true)
		r.Stopping("uid")
		r.answer("c Readiness", good)
		r.pass(time.Second)
		r.want("1s c Readiness", "1s c/1 ready=true")
		r.answer("e Liveness", bad)
		r.Forget("uid", "c")
		r.Forget("uid", "d")
		r.watch(Container{Name: "e", ID: "1", Liveness: every(time.Second)}) // a sidecar that starts again
		r.pass(5 * time.Second)
		r.ignore(false, true)
		r.want("", "")
		r.ForgetPod("uid")
		r.watch(Container{Name: "e", ID: "2", Liveness: every(time.Second)})
		r.want("6.1s e Liveness", "6.1s e forgotten, 6.1s e/2 unhealthy:Liveness")
	})
}

// TestStoppingTakesBackUnhealthy: what the reader has not taken yet as well.
func TestStoppingTakesBackUnhealthy(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		r.answer("c Liveness", bad)
		r.watch(Container{Name: "c", ID: "1", Liveness: every(time.Second)})
		r.want("0s c Liveness", "0s c/1 unhealthy:Liveness")
		r.Stopping("uid")
		r.want("", "0s c/1")
	})
}

func TestPanics(t *testing.T) {
	bubble(t, func(c *Config) {
		c.Observers[0].Checked = func(c Checked) {
			if c.Target.Container == "d" {
				panic("an observer too")
			}
		}
	}, func(r *rig) {
		r.answer("c Readiness", answer{panics: true}, good)
		r.watch(Container{Name: "c", ID: "1", Readiness: every(time.Second)})
		r.watch(Container{Name: "d", ID: "1", Liveness: every(time.Hour)})
		r.pass(1100 * time.Millisecond)
		if !slices.Contains(r.told, "1s c/1 ready=true") {
			t.Errorf("told %v", r.told)
		}
		if i := slices.IndexFunc(r.checked, func(c Checked) bool { return c.Target.Container == "c" }); r.checked[i].Outcome.Result != Unknown ||
			r.checked[i].Outcome.Err == nil || !strings.Contains(r.checked[i].Outcome.Err.Error(), "no such luck") {
			t.Errorf("told observers %+v", r.checked[i])
		}
		for _, want := range []string{"no such luck", "an observer too", "rig_test.go", "container=c"} {
			if !strings.Contains(r.log.String(), want) {
				t.Errorf("%q is not in the log:\n%s", want, r.log.String())
			}
		}
	})
}

// TestEndOfRun: checks that it cuts off are no failures; methods go on to work.
func TestEndOfRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.answer("c Liveness", answer{takes: time.Hour})
		r.watch(Container{Name: "c", ID: "1", Liveness: every(time.Second)})
		r.run()
		r.pass(100 * time.Millisecond)
		r.stop()
		r.want("0s c Liveness", "0s c/1")
		if len(r.checked) != 0 {
			t.Errorf("told observers %+v", r.checked)
		}
		r.watch(Container{Name: "c", ID: "2", Liveness: every(time.Second)})
		r.Stopping("uid")
		r.ForgetPod("uid")
		if err := r.Manager.Run(t.Context()); err == nil {
			t.Error("it ran twice")
		}
	})
}

func TestRestore(t *testing.T) {
	bubble(t, func(c *Config) {
		c.Restored = []Saved{
			{"1", map[Type]Tally{Startup: {Success, Success, 1}, Readiness: {Success, Failure, 2}, Liveness: {Success, Success, 1}}},
			{"2", map[Type]Tally{Liveness: {Failure, Failure, 1}}},
			{"gone", map[Type]Tally{Liveness: {Success, Success, 1}}},
		}
	}, func(r *rig) {
		r.answer("c Readiness", bad)
		old := time.Now().Add(-time.Hour)
		c := Container{Name: "c", ID: "1", StartedAt: old, Startup: every(10 * time.Second), Liveness: every(10 * time.Second), Readiness: thresholds(every(10*time.Second), 1, 3)}
		r.watch(c)
		r.watch(c)
		r.watch(Container{Name: "d", ID: "2", StartedAt: old, Liveness: every(time.Second)})
		r.want("", "0s c/1 started=true ready=true, 0s d/2 unhealthy:Liveness")
		r.pass(time.Second)
		r.want(fmt.Sprintf("%v c Liveness, %v c Readiness", share("uid", "c", Liveness), share("uid", "c", Readiness)),
			fmt.Sprintf("%v c/1 started=true ready=false", share("uid", "c", Readiness)))
		var ids []string
		for _, s := range r.Saved() {
			ids = append(ids, s.ContainerID)
		}
		if got := strings.Join(ids, " "); got != "1 2 gone" {
			t.Errorf("saved %s", got)
		}
		r.pass(2 * time.Hour)
		if got := r.Saved(); len(got) != 2 {
			t.Errorf("what nobody watches is saved after an hour: %v", got)
		}
	})
}

// TestWatchKnowsWhatWasTold: a run that was ready and started before it was
// watched stays so until checks say otherwise, as often as the threshold asks;
// what was restored of it goes before.
func TestWatchKnowsWhatWasTold(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		r.answer("c Readiness", bad)
		old := time.Now().Add(-time.Hour)
		c := Container{
			Name: "c", ID: "1", StartedAt: old, WasStarted: true, WasReady: true,
			Startup: every(10 * time.Second), Readiness: thresholds(every(10*time.Second), 1, 2),
		}
		r.Restore([]Saved{{"2", map[Type]Tally{Readiness: {Failure, Failure, 1}}}})
		r.watch(c)
		c.Name, c.ID = "d", "2"
		r.watch(c)
		r.Restore([]Saved{{"1", map[Type]Tally{Readiness: {Failure, Failure, 1}}}}) // too late
		r.want("", "0s c/1 started=true ready=true, 0s d/2 started=true ready=false")
		r.pass(11 * time.Second)
		first := share("uid", "c", Readiness)
		r.ignore(true, false)
		r.want("", fmt.Sprintf("%v d/2 started=true ready=true, %v c/1 started=true ready=false", share("uid", "d", Readiness), first+10*time.Second))
		c.Name, c.ID, c.WasReady = "c", "1", true
		r.watch(c) // is told nothing new
		r.want("", "")
	})
}

// TestRest: a run that is about to end is not checked and not spoken of; the
// next one under its name, or the same if it lives on, begins anew.
func TestRest(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		c := Container{Name: "c", ID: "1", Readiness: every(10 * time.Second)}
		r.watch(c)
		r.pass(time.Second)
		r.ignore(true, true)
		r.answer("c Readiness", bad)
		r.Rest("uid", "c")
		r.Rest("uid", "nobody")
		r.Rest("nobody", "c")
		r.pass(time.Hour)
		r.want("", "")
		if got := r.Saved(); len(got) != 0 {
			t.Errorf("saved %v of a run at rest", got)
		}
		r.answer("c Readiness", good)
		c.WasReady = true
		r.watch(c)
		r.want("", "1h0m1s c/1 ready=true")
		r.Forget("uid", "c")
		r.pass(time.Minute)
		r.want("", "1h0m1s c forgotten")
	})
}

func share(uid, name string, t Type) time.Duration {
	return time.Duration(shareOf(uid, name, t) * float64(time.Second))
}

// TestChanges: there is news only when there is something else to save.
func TestChanges(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		news := func() bool {
			select {
			case <-r.Changes():
				return true
			default:
				return false
			}
		}
		r.answer("c Liveness", good)
		r.watch(Container{Name: "c", ID: "1", Liveness: thresholds(every(time.Second), 1, 3)})
		r.pass(time.Millisecond)
		if !news() {
			t.Error("no word of the first result")
		}
		r.pass(time.Minute)
		if news() {
			t.Error("news, and all is as before")
		}
		r.answer("c Liveness", bad, good)
		r.pass(time.Second)
		if !news() {
			t.Error("no word of a failure")
		}
		r.Forget("uid", "c")
		if !news() || len(r.Saved()) != 0 {
			t.Error("no word that it is forgotten")
		}
	})
}

// TestSpread: what starts together is checked evenly over the period.
func TestSpread(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		for i := range 1000 {
			r.watch(Container{UID: fmt.Sprint(i), Name: "c", ID: fmt.Sprint(i), Readiness: every(10 * time.Second)})
		}
		r.pass(30 * time.Second)
		r.mu.Lock()
		defer r.mu.Unlock()
		var seconds [10]int
		for _, c := range r.checked {
			if at := c.Due.Sub(r.start); at >= 20*time.Second && at < 30*time.Second {
				seconds[int(at/time.Second)-20]++
			}
			if c.Queued != 0 {
				t.Errorf("queued for %v", c.Queued)
			}
		}
		total := 0
		for _, n := range seconds {
			total += n
			if n < 60 || n > 140 {
				t.Errorf("checks by second: %v", seconds)
			}
		}
		if total != 1000 {
			t.Errorf("%d checks in a period", total)
		}
	})
}

// TestSlowReader: it holds nobody up, and gets the newest of each container.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { r.ended <- r.Manager.Run(ctx) }()
		r.answer("c Readiness", bad, good, bad, good, bad, good)
		r.watch(Container{Name: "b", ID: "1", Readiness: every(time.Hour)})
		r.watch(Container{Name: "c", ID: "1", Readiness: every(time.Second)})
		r.watch(Container{Name: "d", ID: "1", Readiness: every(time.Hour)})
		r.pass(20 * time.Second)
		r.Forget("uid", "d")
		synctest.Wait()
		for _, want := range []string{"b", "c"} {
			if s := <-r.States(); s.Container != want || !*s.Ready {
				t.Errorf("got %+v, want %s ready", s, want)
			}
		}
		synctest.Wait()
		select {
		case s := <-r.States():
			t.Errorf("one more: %+v", s)
		default:
		}
		cancel()
		<-r.ended
		if _, open := <-r.States(); open {
			t.Error("the channel is open after Run ended")
		}
	})
}

func TestWatchRefuses(t *testing.T) {
	r := newRig(t, nil)
	bad := every(0)
	vendor := every(time.Second)
	vendor.Kind = "smoke"
	_, err := r.Watch(Container{Namespace: "ns", Pod: "p", Name: "c", Liveness: bad, Readiness: vendor})
	want := "container c of pod ns/p: Liveness probe: Period: 0s: must be more than 0\nReadiness probe: there is no check of kind \"smoke\""
	if err == nil || err.Error() != want || len(r.pods) != 0 {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestConfigValidate(t *testing.T) {
	none := func(context.Context, Target) Outcome { return Outcome{} }
	for want, cfg := range map[string]Config{
		"Checks: none: at least one kind must have a check": {},
		`Checks["x"]: must have a name and a check`:         {Checks: map[Kind]Check{"x": nil}},
		"Workers: -1: must not be negative":                 {Checks: map[Kind]Check{"x": none}, Workers: -1},
		`Limits["x"]: 0: must be at least 1`:                {Checks: map[Kind]Check{"x": none}, Limits: map[Kind]int{"x": 0}},
		`Limits["y"]: there is no check of this kind`:       {Checks: map[Kind]Check{"x": none}, Limits: map[Kind]int{"y": 1}},
	} {
		if _, err := New(cfg); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
