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
