package probe

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestThresholds(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		r.answer("c Readiness", bad, good, good, bad, bad, bad)
		r.watch(Container{Name: "c", ID: "1", Readiness: thresholds(every(time.Second), 2, 3)})
		r.want("0s c Readiness", "0s c/1 ready=false")
		r.pass(2500 * time.Millisecond)
		gap := spreadGap(every(time.Second), shareOf("uid", "c", Readiness))
		first := 2*time.Second + gap
		if gap > 500*time.Millisecond {
			r.want("1s c Readiness, 2s c Readiness", "2s c/1 ready=true")
		} else {
			r.want(fmt.Sprintf("1s c Readiness, 2s c Readiness, %v c Readiness", first), "2s c/1 ready=true")
		}
		r.ignore(true, false)
		r.pass(first + 2500*time.Millisecond - time.Since(r.start))
		r.ignore(true, false)
		r.want("", fmt.Sprintf("%v c/1 ready=false", first+2*time.Second)) // exactly two periods after the first failure
	})
}

func TestDelaysAndGates(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		r.answer("c Startup", bad, bad, good)
		r.watch(Container{
			Name: "c", ID: "1", StartedAt: time.Now().Add(-time.Second),
			Startup:   thresholds(delayed(every(time.Second), 3*time.Second), 1, 3),
			Liveness:  delayed(every(time.Hour), 6*time.Second),
			Readiness: every(time.Hour),
		})
		r.want("", "0s c/1 started=false ready=false")
		r.pass(10 * time.Second)
		r.want("2s c Startup, 3s c Startup, 4s c Readiness, 4s c Startup, 5s c Liveness",
			"4s c/1 started=true ready=true")
	})
}

// TestUnhealthyHolds: a run that failed is not checked again, the next one is.
func TestUnhealthyHolds(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		grace := 7 * time.Second
		spec := thresholds(every(time.Second), 1, 2)
		spec.Grace = &grace
		r.answer("c Liveness", bad)
		c := Container{Name: "c", ID: "1", Liveness: spec, Readiness: every(time.Hour)}
		r.watch(c)
		r.pass(10 * time.Second)
		r.want("0s c Liveness, 0s c Readiness, 1s c Liveness", "0s c/1 ready=true, 1s c/1 ready=true unhealthy:Liveness")
		r.watch(c)
		r.pass(time.Second)
		r.want("", "")
		c.ID, c.Readiness = "2", nil
		r.answer("c Liveness", good)
		r.watch(c)
		r.want("11s c Liveness", "11s c/2")
	})
}

func TestStartupFails(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		r.answer("c Startup", bad)
		r.watch(Container{Name: "c", ID: "1", Startup: thresholds(every(time.Second), 1, 2), Readiness: every(time.Second)})
		r.pass(5 * time.Second)
		r.want("0s c Startup, 1s c Startup", "0s c/1 started=false ready=false, 1s c/1 started=false ready=false unhealthy:Startup")
	})
}

// TestUnknownCountsAsNothing: it is tried three times at once, and neither
// clears the failures nor adds to them.
func TestUnknownCountsAsNothing(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		away := answer{err: fmt.Errorf("the runtime is away")}
		r.answer("c Liveness", bad, away, away, away, bad, good)
		r.watch(Container{Name: "c", ID: "1", Liveness: thresholds(every(time.Second), 1, 2)})
		r.pass(5 * time.Second)
		r.want("0s c Liveness, 1s c Liveness, 1s c Liveness, 1s c Liveness, 2s c Liveness", "0s c/1, 2s c/1 unhealthy:Liveness")
		if c := r.checked[1]; c.Outcome.Result != Unknown || c.Outcome.Err == nil || c.Counted != Success || c.Changed {
			t.Errorf("told observers %+v", c)
		}
	})
}

// TestWatchAgain: the same run takes over what is new, and only a probe that is
// another one starts over.
func TestWatchAgain(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		c := Container{Name: "c", ID: "1", Host: "a", Liveness: every(time.Hour), Readiness: every(time.Hour)}
		r.watch(c)
		r.pass(time.Second)
		r.ignore(true, true)
		same := *c.Liveness
		c.Host, c.Liveness, c.Readiness = "b", &same, every(time.Minute)
		r.watch(c)
		r.want("1s c Readiness", "1s c/1 ready=true")
		if got := r.checked[2].Target.Host; got != "b" {
			t.Errorf("checked %q", got)
		}
		c.Readiness = nil
		r.watch(c)
		r.pass(2 * time.Hour)
		if slices.ContainsFunc(r.checks, func(s string) bool { return strings.Contains(s, "Readiness") }) {
			t.Error("a probe that is no more is checked")
		}
		r.ignore(true, false)
		r.want("", "1s c/1")
	})
}

// TestSlowCheck: never two checks of one probe, and no burst afterwards.
func TestSlowCheck(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		r.answer("c Liveness", answer{result: Failure, takes: 3500 * time.Millisecond, deaf: true}, bad)
		r.watch(Container{Name: "c", ID: "1", Liveness: thresholds(every(time.Second), 1, 9)})
		r.pass(5500 * time.Millisecond)
		r.want("0s c Liveness, 4s c Liveness, 5s c Liveness", "0s c/1")
	})
}

// TestTimeoutAsLongAsThePeriod: a probe that always times out fails in the time
// that the user asked for.
func TestTimeoutAsLongAsThePeriod(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		r.answer("c Liveness", answer{takes: time.Hour})
		r.watch(Container{Name: "c", ID: "1", Liveness: thresholds(every(time.Second), 1, 3)})
		r.pass(10 * time.Second)
		r.want("0s c Liveness, 1s c Liveness, 2s c Liveness", "0s c/1, 3s c/1 unhealthy:Liveness")
	})
}

// TestQueue: a kind with a limit waits in order, its timeout begins when it
// runs, and no other kind waits for it.
func TestQueue(t *testing.T) {
	limit := func(c *Config) { c.Limits = map[Kind]int{Exec: 1} }
	bubble(t, limit, func(r *rig) {
		exec := every(time.Hour)
		exec.Handler = corev1.ProbeHandler{Exec: &corev1.ExecAction{}}
		for _, name := range []string{"a", "b", "c"} {
			r.answer(name+" Liveness", answer{result: Success, takes: 900 * time.Millisecond})
			r.watch(Container{Name: name, ID: name, Liveness: exec})
			synctest.Wait()
		}
		r.watch(Container{Name: "t", ID: "t", Liveness: every(time.Hour)})
		r.pass(3 * time.Second)
		r.ignore(false, true)
		r.want("0s a Liveness, 0s t Liveness, 900ms b Liveness, 1.8s c Liveness", "")
		if c := r.checked[len(r.checked)-1]; c.Queued != 1800*time.Millisecond || c.Took != 900*time.Millisecond || c.Counted != Success || c.Kind != Exec {
			t.Errorf("told observers of the last: %+v", c)
		}
	})
}

// TestQueueGivesUpWhatIsForgotten: it does not run, and holds nobody up.
func TestQueueGivesUpWhatIsForgotten(t *testing.T) {
	bubble(t, func(c *Config) { c.Workers = 1 }, func(r *rig) {
		for _, name := range []string{"a", "b", "c"} {
			r.answer(name+" Liveness", answer{result: Success, takes: 500 * time.Millisecond})
			r.watch(Container{Name: name, ID: name, Liveness: every(time.Hour)})
			synctest.Wait()
		}
		r.Forget("uid", "b")
		r.pass(3 * time.Second)
		r.ignore(false, true)
		r.want("0s a Liveness, 500ms c Liveness", "")
	})
}
