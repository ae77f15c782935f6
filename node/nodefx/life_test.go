package nodefx_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/wire"
	podruntime "nodekit.dev/runtime"
	"nodekit.dev/runtime/runtimetest"
)

func oneWebPod() nodefx.Option {
	return nodefx.AddSource("go", pods{"go", []*corev1.Pod{actortest.Pod("1", "web")}})
}

// TestHourOfACrashLoop: a whole fx app runs inside a bubble, so an hour of a
// pod that crashes takes no time, and its restarts are where back-off puts them.
func TestHourOfACrashLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := actortest.New(t, runtimetest.Config{})
		b.Script("app", runtimetest.Behaviour{RunFor: time.Second, ExitCode: 1})
		a := newAgent(t, onWorld(t, b, oneWebPod())...)
		must(t, a.Start(t.Context()))
		<-a.Ready()
		after(time.Hour)
		// Restarts wait for 0, 10, 20, 40, 80, 160 and then 300 s, and a run lasts
		// one: the 8th start comes after 617 s, and then one every 301 s.
		want := 8 + int((time.Hour-617*time.Second)/(301*time.Second))
		if got := b.Calls(runtimetest.MethodStartContainer); got != want {
			t.Errorf("%d starts in an hour, want %d", got, want)
		}
		if reason := b.Last("1").Status.ContainerStatuses[0].State.Waiting.Reason; reason != "CrashLoopBackOff" {
			t.Errorf("it waits for %s", reason)
		}
		must(t, a.Stop(t.Context()))
	})
}

// TestRestartInOneProcess: start, stop and a new agent on the same runtime and
// directory leave the containers as they are.
func TestRestartInOneProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := actortest.New(t, runtimetest.Config{})
		cfg := config(t)
		var first string
		for range 3 {
			a := newAgent(t, onWorld(t, b, nodefx.Config(cfg), oneWebPod())...)
			must(t, a.Start(t.Context()))
			after(time.Minute)
			seen := b.Seen(t, "1")
			if len(seen.Containers) != 1 || b.Running(t, "1") != 1 {
				t.Fatalf("the pod: %+v", seen)
			}
			if first == "" {
				first = seen.Containers[0].ID
			}
			if id := seen.Containers[0].ID; id != first {
				t.Errorf("container %s instead of %s", id, first)
			}
			must(t, a.Stop(t.Context()))
			after(time.Minute)
		}
		if n := b.Calls(runtimetest.MethodStartContainer); n != 1 {
			t.Errorf("%d starts, want 1", n)
		}
		if n := b.Calls(runtimetest.MethodStopContainer); n != 0 {
			t.Errorf("%d stops, want none", n)
		}
	})
}

func TestStartOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t, onWorld(t, actortest.New(t, runtimetest.Config{}))...)
		must(t, a.Stop(t.Context())) // not started: nothing to do
		must(t, a.Start(t.Context()))
		wantError(t, a.Start(t.Context()), "started before", "nodefx.New")
		must(t, a.Stop(t.Context()))
		must(t, a.Stop(t.Context()))
		wantError(t, a.Start(t.Context()), "started before")
	})
}

// TestRootIsLocked: a second agent on one root directory is refused with the
// first one's name, and leaves nothing behind that runs.
func TestRootIsLocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t)
		first := newAgent(t, onWorld(t, actortest.New(t, runtimetest.Config{}), nodefx.Config(cfg))...)
		must(t, first.Start(t.Context()))
		cfg.NodeName = "node-2"
		second := newAgent(t, onWorld(t, actortest.New(t, runtimetest.Config{}), nodefx.Config(cfg))...)
		err := second.Start(t.Context())
		var locked *wire.LockedError
		if !errors.As(err, &locked) || !strings.HasPrefix(locked.Owner, "node-1 (pid ") {
			t.Errorf("error %v, want one that names node-1", err)
		}
		must(t, second.Stop(t.Context()))
		must(t, first.Stop(t.Context()))

		third := newAgent(t, onWorld(t, actortest.New(t, runtimetest.Config{}), nodefx.Config(cfg))...)
		must(t, third.Start(t.Context())) // the lock was given back
		must(t, third.Stop(t.Context()))
	})
}

// TestNewDoesNothing: no file, no goroutine (the bubble would not end), and
// with all stock parts no connection to a runtime that is not there.
func TestNewDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t)
		cfg.RootDir = filepath.Join(cfg.RootDir, "kubelet")
		cfg.Host = wire.Host{LogLinksDir: filepath.Join(cfg.PodLogsDir, "links"), Hosts: true, PodCgroups: true}
		newAgent(t, nodefx.Config(cfg))
		for _, dir := range []string{cfg.RootDir, cfg.Host.LogLinksDir} {
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: %v, want that it does not exist", dir, err)
			}
		}
	})
}

// TestNoSignalHandlers: signals belong to the program. Package os/signal has a
// goroutine as soon as anybody asks for one.
func TestNoSignalHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t, onWorld(t, actortest.New(t, runtimetest.Config{}))...)
		must(t, a.Start(t.Context()))
		synctest.Wait()
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		if !strings.Contains(string(stacks), "nodekit.dev/node.") {
			t.Fatal("the agent's own goroutines are not among the stacks")
		}
		if strings.Contains(string(stacks), "os/signal") {
			t.Errorf("somebody handles signals:\n%s", stacks)
		}
		must(t, a.Stop(t.Context()))
	})
}

// badWatcher panics in the node's own goroutine.
type badWatcher struct{ *actortest.Bench }

func (badWatcher) Hints() <-chan podruntime.Hint { panic("no ears") }

// TestDoneReportsAPartThatEnded: a panic of a part is an error with its name.
func TestDoneReportsAPartThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := actortest.New(t, runtimetest.Config{})
		a := newAgent(t, nodefx.Config(config(t)),
			nodefx.Replace[node.Engine](func() *actortest.Bench { return b }),
			nodefx.Replace[node.Watcher](func() badWatcher { return badWatcher{b} }),
			nodefx.Replace[node.Puller](func() *actortest.Bench { return b }),
			nodefx.Replace[node.HookRunner](func() noHandlers { return noHandlers{} }),
		)
		must(t, a.Start(t.Context()))
		wantError(t, <-a.Done(), "node: panic: no ears")
		must(t, a.Stop(t.Context()))
		after(time.Minute)
		select {
		case err := <-a.Done():
			t.Errorf("a second report: %v", err)
		default:
		}
	})
}

// panicky is a hook that panics at its first two calls.
type panicky struct {
	node.NoHook
	left chan struct{}
}

func (p panicky) Prepare(context.Context, *corev1.Pod) error {
	select {
	case <-p.left:
		panic("unplugged")
	default:
		return nil
	}
}

// TestPanicOfAHook: it holds the pod and names the hook; the process and the
// pod live on.
func TestPanicOfAHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := actortest.New(t, runtimetest.Config{})
		hook := panicky{left: make(chan struct{}, 2)}
		hook.left <- struct{}{}
		hook.left <- struct{}{}
		var log lines
		a := newAgent(t, onWorld(t, b, oneWebPod(), nodefx.AddHook("power", hook),
			nodefx.Configure(func(c *wire.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) }))...)
		must(t, a.Start(t.Context()))
		synctest.Wait()
		if b.Running(t, "1") != 0 {
			t.Error("the pod runs though its hook has failed")
		}
		after(time.Hour)
		if b.Running(t, "1") != 1 {
			t.Error("the pod does not run though its hook has recovered")
		}
		if !strings.Contains(log.String(), "hook power") || !strings.Contains(log.String(), "unplugged") {
			t.Errorf("the log does not name the hook:\n%s", log.String())
		}
		must(t, a.Stop(t.Context()))
	})
}

// stops is a vendor's part with lifecycle hooks of its own.
type stops struct{ called []string }

func (s *stops) hook(lc fx.Lifecycle, name string, stop func(context.Context) error) {
	lc.Append(fx.Hook{OnStop: func(ctx context.Context) error {
		s.called = append(s.called, name)
		return stop(ctx)
	}})
}

func (s *stops) newAdmitter(lc fx.Lifecycle) node.Admitter {
	s.hook(lc, "good", func(context.Context) error { return nil })
	hanging(lc, s)
	panicking(lc, s)
	failing(lc, s)
	s.hook(lc, "last", func(context.Context) error { return nil })
	return member{}
}

func hanging(lc fx.Lifecycle, s *stops) {
	lc.Append(fx.StopHook(func(ctx context.Context) { s.called = append(s.called, "hangs"); <-ctx.Done() }))
}

func panicking(lc fx.Lifecycle, s *stops) {
	lc.Append(fx.StopHook(func() { s.called = append(s.called, "panics"); panic("no ground") }))
}

func failing(lc fx.Lifecycle, s *stops) {
	lc.Append(fx.StopHook(func() error { s.called = append(s.called, "fails"); return errors.New("jammed") }))
}

// TestStopCallsEveryStop: whatever the others do, each is called, in reverse
// order, and those that went wrong are named.
func TestStopCallsEveryStop(t *testing.T) {
	for name, tc := range map[string]struct {
		patience time.Duration // of the caller
		took     time.Duration
	}{
		"within the budget of each":    {patience: time.Hour, took: 7 * time.Second},
		"when the caller's time is up": {patience: time.Second, took: time.Second + 100*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stops{}
				cfg := config(t)
				opts := onWorld(t, actortest.New(t, runtimetest.Config{}), nodefx.Config(cfg), oneWebPod(), nodefx.StopBudget(7*time.Second))
				a := newAgent(t, append(opts, nodefx.AddAdmitter("site", s.newAdmitter))...)
				must(t, a.Start(t.Context()))
				synctest.Wait()
				begun := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), tc.patience)
				defer cancel()
				err := a.Stop(ctx)
				wantError(t, err, "hook of nodefx_test.hanging: did not stop within "+tc.took.String(),
					"hook of nodefx_test.panicking: panic: no ground", "hook of nodefx_test.failing: jammed")
				if strings.Count(err.Error(), "did not stop") != 1 {
					t.Errorf("more than one is said to hang: %v", err)
				}
				if took := time.Since(begun); took != tc.took {
					t.Errorf("the stop took %v, want %v", took, tc.took)
				}
				if want := []string{"last", "fails", "panics", "hangs", "good"}; !slices.Equal(s.called, want) {
					t.Errorf("called %v, want %v", s.called, want)
				}
				if unlock, err := wire.Lock(cfg.RootDir, "next"); err != nil {
					t.Errorf("the root directory is still locked: %v", err)
				} else {
					must(t, unlock())
				}
			})
		})
	}
}

// TestStartThatFails: what had started is stopped again, also when the caller's
// time is over, and the error names the hook.
func TestStartThatFails(t *testing.T) {
	for name, tc := range map[string]struct {
		start func(over <-chan struct{}) error
		want  []string
	}{
		"with an error": {func(<-chan struct{}) error { return errors.New("no signal") }, []string{"no signal"}},
		"with a panic":  {func(<-chan struct{}) error { panic("no signal") }, []string{"panic: no signal"}},
		"by hanging":    {func(over <-chan struct{}) error { <-over; return nil }, []string{"did not start in time"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over := make(chan struct{})
				defer close(over)
				cfg := config(t)
				newAdmitter := func(lc fx.Lifecycle) node.Admitter {
					lc.Append(fx.Hook{OnStart: func(context.Context) error { return tc.start(over) }})
					return member{}
				}
				a := newAgent(t, onWorld(t, actortest.New(t, runtimetest.Config{}), nodefx.Config(cfg), nodefx.AddAdmitter("radio", newAdmitter))...)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				wantError(t, a.Start(ctx), append(tc.want, "hook of nodefx_test.TestStartThatFails")...)
				unlock, err := wire.Lock(cfg.RootDir, "next")
				if err != nil {
					t.Fatalf("the root directory is still locked: %v", err)
				}
				must(t, unlock())
				must(t, a.Stop(t.Context()))
			})
		})
	}
}

// TestLifecycle: what a vendor's constructor ties to the agent runs, is named
// among the parts, and is reported when it ends by itself.
func TestLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broke := make(chan struct{})
		var steps []string
		step := func(name string) func(context.Context) error {
			return func(context.Context) error { steps = append(steps, name); return nil }
		}
		newAdmitter := func(lc nodefx.Lifecycle) node.Admitter {
			lc.Hold("radio", step("radio on"), step("radio off"))
			lc.Run("beacon", func(ctx context.Context) error {
				select {
				case <-broke:
					return errors.New("no fuel")
				case <-ctx.Done():
					return nil
				}
			})
			return member{}
		}
		a := newAgent(t, onWorld(t, actortest.New(t, runtimetest.Config{}), nodefx.AddAdmitter("radio", newAdmitter))...)
		if want := []string{"root-lock", "probes", "probe-results", "radio", "beacon", "node"}; !slices.Equal(a.Parts(), want) {
			t.Errorf("parts %v, want %v", a.Parts(), want)
		}
		must(t, a.Start(t.Context()))
		close(broke)
		wantError(t, <-a.Done(), "beacon: no fuel")
		must(t, a.Stop(t.Context()))
		if want := []string{"radio on", "radio off"}; !slices.Equal(steps, want) {
			t.Errorf("steps %v, want %v", steps, want)
		}
	})
}
