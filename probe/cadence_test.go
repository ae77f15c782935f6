package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// rig is a manager that runs in a bubble of fake time, whose checks answer as
// the test says. A container's checks of one type give its results one after
// the other, the last again and again.
type rig struct {
	*testing.T
	*Manager
	start  time.Time
	cancel context.CancelFunc
	ended  chan error

	mu      sync.Mutex
	answers map[string][]answer
	checks  []string // "0.5s c Liveness"
	checked []Checked
	told    []string
	log     strings.Builder
}

type answer struct {
	result Result
	err    error
	takes  time.Duration
	deaf   bool // does not end with its context
	panics bool
}

func newRig(t *testing.T, edit func(*Config)) *rig {
	r := &rig{T: t, start: time.Now(), ended: make(chan error, 1), answers: map[string][]answer{}}
	cfg := Config{
		Checks: map[Kind]Check{TCPSocket: r.check, Exec: r.check},
		Logger: slog.New(slog.NewTextHandler(&r.log, nil)),
		Observers: []Observer{{}, {
			Checked:   func(c Checked) { r.mu.Lock(); r.checked = append(r.checked, c); r.mu.Unlock() },
			Forgotten: func(c Container) { r.say("%s forgotten", c.Name) },
		}},
	}
	if edit != nil {
		edit(&cfg)
	}
	var err error
	if r.Manager, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) run() {
	ctx, cancel := context.WithCancel(r.Context())
	r.cancel = cancel
	go func() { r.ended <- r.Manager.Run(ctx) }()
	go func() {
		for s := range r.States() {
			line := s.Container + "/" + s.ContainerID
			if s.Started != nil {
				line += fmt.Sprint(" started=", *s.Started)
			}
			if s.Ready != nil {
				line += fmt.Sprint(" ready=", *s.Ready)
			}
			if s.Unhealthy {
				line += " unhealthy:" + string(s.Failed)
			}
			r.say("%s", line)
		}
	}()
}

func (r *rig) stop() {
	r.cancel()
	if err := <-r.ended; !errors.Is(err, context.Canceled) {
		r.Errorf("Run ended with %v", err)
	}
	synctest.Wait()
}

func (r *rig) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := fmt.Sprint(time.Since(r.start), " ", fmt.Sprintf(format, args...))
	about, _, _ := strings.Cut(line, "/")
	if last := len(r.told) - 1; last >= 0 && strings.HasPrefix(r.told[last], about+"/") && about != line {
		r.told[last] = line // whether the reader saw what was true for no time is chance
		return
	}
	r.told = append(r.told, line)
}

func (r *rig) check(ctx context.Context, t Target) Outcome {
	r.mu.Lock()
	r.checks = append(r.checks, fmt.Sprint(time.Since(r.start), " ", t.Container, " ", t.Type))
	key := t.Container + " " + string(t.Type)
	a := answer{result: Success}
	if list := r.answers[key]; len(list) > 0 {
		a = list[0]
		if len(list) > 1 {
			r.answers[key] = list[1:]
		}
	}
	r.mu.Unlock()
	if a.panics {
		panic("no such luck")
	}
	if a.deaf {
		time.Sleep(a.takes) // fake time
	} else if a.takes > 0 {
		select {
		case <-time.After(a.takes):
		case <-ctx.Done():
			return Outcome{Result: Failure, Output: "timeout"}
		}
	}
	return Outcome{Result: a.result, Output: a.result.String(), Err: a.err}
}

func (r *rig) watch(c Container) {
	r.Helper()
	if c.UID == "" {
		c.UID = "uid"
	}
	if _, err := r.Watch(c); err != nil {
		r.Error(err)
	}
}

func (r *rig) answer(what string, a ...answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[what] = a
}

func (r *rig) pass(d time.Duration) {
	time.Sleep(d) // fake time
	synctest.Wait()
}

// ignore forgets what was checked, or told, since the last call of want.
func (r *rig) ignore(checks, told bool) {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if checks {
		r.checks = nil
	}
	if told {
		r.told = nil
	}
}

// want compares what was checked and told since the last call.
func (r *rig) want(checks, told string) {
	r.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortFunc(r.checks, func(a, b string) int { return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a, b)) })
	if got := strings.Join(r.checks, ", "); got != checks {
		r.Errorf("checks:\n got %s\nwant %s", got, checks)
	}
	if got := strings.Join(r.told, ", "); got != told {
		r.Errorf("told:\n got %s\nwant %s", got, told)
	}
	r.checks, r.told = nil, nil
}

func at(line string) time.Duration {
	text, _, _ := strings.Cut(line, " ")
	d, _ := time.ParseDuration(text)
	return d
}

// bubble runs a test on a manager that runs.
func bubble(t *testing.T, edit func(*Config), test func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, edit)
		r.run()
		test(r)
		r.stop()
	})
}

func thresholds(s *Spec, success, failure int) *Spec {
	s.SuccessThreshold, s.FailureThreshold = success, failure
	return s
}

func delayed(s *Spec, delay time.Duration) *Spec {
	s.InitialDelay = delay
	return s
}

var (
	good = answer{result: Success}
	bad  = answer{result: Failure}
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
		for _, want := range []string{"no such luck", "an observer too", "cadence_test.go", "container=c"} {
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
