package podactor_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime/runtimetest"
)

// stage is one actor on a bench inside a bubble.
type stage struct {
	*testing.T
	*actortest.Bench
	parts podactor.Parts
	root  string // of the actor's files
	actor *podactor.Actor
	want  lifecycle.Want
	done  chan error
	kill  context.CancelFunc
}

// newStage prepares an actor; edit may change its parts before it is made.
func newStage(t *testing.T, pod *corev1.Pod, edit ...func(*stage)) *stage {
	t.Helper()
	b := actortest.New(t, runtimetest.Config{})
	s := &stage{T: t, Bench: b, root: t.TempDir(), done: make(chan error, 1)}
	s.want = lifecycle.Want{
		UID: string(pod.UID), Namespace: pod.Namespace, Name: pod.Name, Pod: pod, Static: true,
		Rules: lifecycle.DefaultRules(),
	}
	s.parts = podactor.Parts{
		Engine: b, Watcher: b, Puller: b, Mounter: b.Mounts, Specs: actortest.Specs{},
		Status: b, Events: b, Packer: podactor.NewPacker(), Decide: lifecycle.Decide,
	}
	for _, e := range edit {
		e(s)
	}
	s.start()
	return s
}

func config(t *testing.T) podactor.Config {
	cfg := podactor.DefaultConfig()
	cfg.RootDir = t.TempDir()
	return cfg
}

// start makes an actor and runs it, with the world's hints.
func (s *stage) start() {
	s.Helper()
	cfg := config(s.T)
	cfg.RootDir = s.root
	actor, err := podactor.New(cfg, s.parts, s.want)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.Context())
	s.actor, s.kill = actor, cancel
	hints := s.Hints() // before the first event
	go func() { s.done <- actor.Run(ctx) }()
	go func() {
		for {
			select {
			case hint := <-hints:
				actor.Hint(hint.At)
			case <-ctx.Done():
				return
			}
		}
	}()
	s.Cleanup(cancel)
}

// after lets fake time pass.
func (s *stage) after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (s *stage) stop(reason lifecycle.StopReason, grace time.Duration) {
	want := s.want
	want.Stop = &lifecycle.Stop{Reason: reason, At: time.Now(), Grace: grace}
	s.actor.Want(want)
}

// gone waits for the end of Run after a deletion.
func (s *stage) gone(within time.Duration) {
	s.Helper()
	start := time.Now()
	select {
	case err := <-s.done:
		if err != nil {
			s.Fatalf("Run: %v", err)
		}
	case <-time.After(10 * time.Minute):
		trace, _ := s.actor.Trace()
		s.Fatalf("not gone; last status %+v, trace of %d", s.Last(s.want.UID), len(trace.Entries))
	}
	if took := time.Since(start); took > within {
		s.Errorf("gone after %v, want at most %v", took, within)
	}
	s.CheckEmpty()
}

func (s *stage) wantRunning(n int) {
	s.Helper()
	if got := s.Running(s.T, s.want.UID); got != n {
		s.Fatalf("%d containers run, want %d", got, n)
	}
}

func ready(update podactor.StatusUpdate) bool {
	return slices.ContainsFunc(update.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func TestStartAndDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := actortest.Pod("u1", "web", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "data"}}
			p.Spec.Containers[0].TerminationMessagePath = "/dev/termination-log"
		})
		s := newStage(t, pod)
		s.after(time.Second)
		s.wantRunning(1)
		last := s.Last("u1")
		if last.Phase != lifecycle.Running || last.Status.Phase != corev1.PodRunning || !ready(last) {
			t.Errorf("phase %v, status %+v", last.Phase, last.Status)
		}
		for i, update := range s.Statuses("u1")[1:] {
			if prev := s.Statuses("u1")[i]; prev.Phase > update.Phase {
				t.Errorf("phase fell from %v to %v", prev.Phase, update.Phase)
			}
		}
		s.stop(lifecycle.StopDeleted, 30*time.Second)
		s.gone(5 * time.Second)
		if names, _ := s.Mounts.Mounted(t.Context(), "u1"); len(names) > 0 {
			t.Errorf("still mounted: %v", names)
		}
		if !slices.Contains(s.Events("u1"), "Killing") {
			t.Errorf("events %v, want Killing among them", s.Events("u1"))
		}
	})
}

func TestNoWaitBetweenSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := newStage(t, actortest.Pod("u1", "web"))
		synctest.Wait() // everything that needs no time
		s.wantRunning(1)
		if !ready(s.Last("u1")) {
			t.Errorf("not ready: %+v", s.Last("u1").Status)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("the agent added %v to a start", took)
		}
	})
}

func TestRestartOfTheAgentLeavesContainersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, actortest.Pod("u1", "web"))
		s.after(time.Second)
		before := s.Seen(t, "u1")
		s.kill()
		if err := <-s.done; !errors.Is(err, context.Canceled) {
			t.Fatalf("Run: %v", err)
		}
		s.wantRunning(1)
		told := len(s.Statuses("u1"))
		s.start()
		s.after(time.Minute)
		after := s.Seen(t, "u1")
		if before.Containers[0].ID != after.Containers[0].ID || len(after.Containers) != 1 || len(after.Sandboxes) != 1 {
			t.Errorf("before %+v, after %+v", before, after)
		}
		for _, update := range s.Statuses("u1")[told:] {
			if !ready(update) {
				t.Errorf("readiness flapped: %+v", update.Status)
			}
		}
	})
}

// wonStart is an engine whose start takes effect and then hangs until it is
// cancelled, as a call does whose answer got lost.
type wonStart struct {
	*actortest.Bench
	hung chan struct{}
}

func (e wonStart) StartContainer(ctx context.Context, req podactor.StartContainerRequest) (podactor.StartContainerResult, error) {
	if _, err := e.Bench.StartContainer(ctx, req); err != nil {
		return podactor.StartContainerResult{}, err
	}
	close(e.hung)
	<-ctx.Done()
	return podactor.StartContainerResult{}, ctx.Err()
}

func TestCancelledStartThatWon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := make(chan struct{})
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) { s.parts.Engine = wonStart{s.Bench, hung} })
		<-hung
		s.wantRunning(1)
		s.stop(lifecycle.StopDeleted, 30*time.Second) // cancels the start, which has won
		s.gone(5 * time.Second)                       // the world is strict: nothing was removed while it ran
	})
}

// brokenLook is a watcher whose looks hang or fail while told so.
type brokenLook struct {
	*actortest.Bench
	fail func() error
}

func (w brokenLook) Look(ctx context.Context, req podactor.LookRequest) (podactor.LookResult, error) {
	if err := w.fail(); err != nil {
		if errors.Is(err, errHang) {
			<-ctx.Done()
			err = ctx.Err()
		}
		return podactor.LookResult{}, err
	}
	return w.Bench.Look(ctx, req)
}

var (
	errHang = errors.New("hang")
	errDown = errors.New("runtime is down")
)

// cell is a variable that a test shares with the parts of an actor.
type cell[T any] struct {
	mu sync.Mutex
	v  T
}

func (c *cell[T]) get() T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.v
}

// swap puts a new value in and returns the old one.
func (c *cell[T]) swap(v T) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.v
	c.v = v
	return old
}

// list gathers values from several goroutines.
type list[T any] struct{ cell[[]T] }

func (l *list[T]) add(v T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.v = append(l.v[:len(l.v):len(l.v)], v)
}

func TestLookThatFailsLeavesTheKeyBusy(t *testing.T) {
	for name, failure := range map[string]error{"fails": errDown, "hangs": errHang} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var fail cell[error]
				var broken cell[bool]
				s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) {
					s.parts.Watcher = brokenLook{s.Bench, fail.get}
					s.parts.Engine = engineFunc{Bench: s.Bench, afterSandbox: func() {
						if !broken.swap(true) {
							fail.swap(failure)
						}
					}}
				})
				s.after(5 * time.Minute) // nobody knows whether there is a sandbox
				if n := s.Calls(runtimetest.MethodRunSandbox); n != 1 {
					t.Fatalf("%d sandboxes were asked for", n)
				}
				s.wantRunning(0)
				fail.swap(nil)
				s.after(2 * time.Minute) // the back-off's maximum and a look
				s.wantRunning(1)
				if n := s.Calls(runtimetest.MethodRunSandbox); n != 1 {
					t.Errorf("%d sandboxes were asked for", n)
				}
			})
		})
	}
}

func TestPokeCutsTheBackoffOfLooksShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := cell[error]{v: errDown}
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) {
			s.parts.Watcher = brokenLook{s.Bench, fail.get}
		})
		s.after(10 * time.Minute)
		fail.swap(nil)
		s.actor.Poke()
		synctest.Wait()
		s.wantRunning(1)
	})
}

// engineFunc is the bench's engine with places to step in.
type engineFunc struct {
	*actortest.Bench
	afterSandbox func()
	beforeStop   func(podactor.StopContainerRequest)
	startErr     func() error
}

func (e engineFunc) RunSandbox(ctx context.Context, req podactor.RunSandboxRequest) (podactor.RunSandboxResult, error) {
	res, err := e.Bench.RunSandbox(ctx, req)
	if e.afterSandbox != nil {
		e.afterSandbox()
	}
	return res, err
}

func (e engineFunc) StartContainer(ctx context.Context, req podactor.StartContainerRequest) (podactor.StartContainerResult, error) {
	if e.startErr != nil {
		if err := e.startErr(); err != nil {
			return podactor.StartContainerResult{}, err
		}
	}
	return e.Bench.StartContainer(ctx, req)
}

func (e engineFunc) StopContainer(ctx context.Context, req podactor.StopContainerRequest) error {
	if e.beforeStop != nil {
		e.beforeStop(req)
	}
	return e.Bench.StopContainer(ctx, req)
}

func TestStaleHintLookDoesNotUndoNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var looks atomic.Int32
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) {
			s.parts.Watcher = numberedLooks{Bench: s.Bench, look: func() error {
				if looks.Add(1) == 2 {
					<-release // holding back what it read: a sandbox without containers
				}
				return nil
			}}
			s.parts.Engine = engineFunc{Bench: s.Bench, afterSandbox: func() {
				<-time.After(2 * time.Second) // the hint of the new sandbox starts look 2 meanwhile
			}}
		})
		s.after(4 * time.Second)
		s.wantRunning(1)
		close(release)
		s.after(time.Minute)
		s.wantRunning(1)
		if n := s.Calls(runtimetest.MethodStartContainer); n != 1 || looks.Load() < 3 {
			t.Errorf("%d starts, want 1; %d looks", n, looks.Load())
		}
		wasReady := false
		for _, update := range s.Statuses("u1") {
			if wasReady && !ready(update) {
				t.Errorf("the old look undid the news: %+v", update.Status)
			}
			wasReady = ready(update)
		}
	})
}

func TestFailuresBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := cell[error]{v: errors.New("no such runtime handler")}
		var at list[time.Duration]
		start := time.Now()
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) {
			s.parts.Engine = engineFunc{Bench: s.Bench, startErr: func() error {
				at.add(time.Since(start))
				return fail.get()
			}}
		})
		s.after(16 * time.Second)
		want := []time.Duration{0, 1, 3, 7, 15}
		for i := range want {
			want[i] *= time.Second
		}
		if got := at.get(); !slices.Equal(got, want) {
			t.Errorf("tries at %v, want %v", got, want)
		}
		waiting := s.Last("u1").Status.ContainerStatuses[0].State.Waiting
		if waiting == nil || waiting.Reason != "RunContainerError" {
			t.Errorf("container status %+v, want waiting for RunContainerError", s.Last("u1").Status.ContainerStatuses[0])
		}
		fail.swap(nil)
		s.after(time.Minute)
		s.wantRunning(1)
	})
}

func TestHeldPodDoesNothingAndLooksWhenItsTurnComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) { s.want.Held = true })
		s.after(time.Minute)
		s.actor.Poke()
		s.after(time.Minute)
		if n := s.Calls(runtimetest.MethodLook); n != 0 {
			t.Errorf("a held pod looked %d times: the pod of its UID is another one's", n)
		}
		want := s.want
		want.Held = false
		s.actor.Want(want)
		synctest.Wait()
		s.wantRunning(1)
	})
}

func TestHeldPodThatIsDeletedIsGoneAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) { s.want.Held = true })
		s.after(time.Minute)
		s.want.Held = true
		s.stop(lifecycle.StopDeleted, 30*time.Second)
		s.gone(0)
	})
}

func TestCompletedPodStaysUntilItIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := actortest.Pod("u1", "job", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever })
		s := newStage(t, pod, func(s *stage) { s.Script("app", runtimetest.Behaviour{RunFor: time.Minute}) })
		s.after(time.Hour)
		if got := s.Last("u1").Status.Phase; got != corev1.PodSucceeded {
			t.Fatalf("phase %v, want Succeeded", got)
		}
		if n := s.Calls(runtimetest.MethodStartContainer); n != 1 {
			t.Errorf("%d starts, want 1", n)
		}
		s.stop(lifecycle.StopDeleted, 30*time.Second)
		s.gone(time.Second)
	})
}

func TestDecidePanicIsKeptToThePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := cell[bool]{v: true}
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) {
			s.parts.Decide = func(in lifecycle.Input) lifecycle.Plan {
				if broken.get() {
					panic("a bug")
				}
				return lifecycle.Decide(in)
			}
		})
		s.after(time.Second)
		broken.swap(false)
		s.after(2 * time.Minute)
		s.wantRunning(1)
	})
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	b := actortest.New(t, runtimetest.Config{})
	good := podactor.Parts{
		Engine: b, Watcher: b, Puller: b, Mounter: b.Mounts, Specs: actortest.Specs{}, Decide: lifecycle.Decide,
	}
	cfg := config(t)
	for name, tc := range map[string]struct {
		cfg   podactor.Config
		parts podactor.Parts
		uid   string
		want  string
	}{
		"no parts":      {cfg, podactor.Parts{}, "u", "pod actor: missing parts: Decide, Engine, Mounter, Puller, Specs, Watcher"},
		"no uid":        {cfg, good, "", "pod ns/n: UID is empty"},
		"uid is a path": {cfg, good, "../../etc", `pod ns/n: UID "../../etc" can not name a directory`},
		"no root":       {podactor.DefaultConfig(), good, "u", `pod actor: config: RootDir "": must be absolute`},
	} {
		_, err := podactor.New(tc.cfg, tc.parts, lifecycle.Want{UID: tc.uid, Namespace: "ns", Name: "n"})
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s: error %v, want %s", name, err, tc.want)
		}
	}
}

func TestOldLookThatWorksDoesNotStandInForANewOneThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The look of a hint is under way when the sandbox is made; the look
		// after that fails at once, and then the old one comes back well.
		release := make(chan struct{})
		var looks atomic.Int32
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) {
			s.parts.Watcher = numberedLooks{Bench: s.Bench, look: func() error {
				switch looks.Add(1) {
				case 2:
					<-release
				case 3:
					close(release)
					return errDown
				}
				return nil
			}}
			s.parts.Engine = engineFunc{Bench: s.Bench, afterSandbox: func() {
				<-time.After(2 * time.Second) // the hint of the new sandbox starts look 2 meanwhile
			}}
		})
		s.after(time.Minute)
		s.wantRunning(1)
	})
}

// numberedLooks steps in between each look and its answer.
type numberedLooks struct {
	*actortest.Bench
	look func() error
}

func (w numberedLooks) Look(ctx context.Context, req podactor.LookRequest) (podactor.LookResult, error) {
	res, err := w.Bench.Look(ctx, req)
	if err := w.look(); err != nil {
		return podactor.LookResult{}, err
	}
	return res, err
}

// openGate lets everybody in and notes who had begun.
type openGate struct{ begun list[bool] }

func (g *openGate) Enter(_ context.Context, begun bool, _ int64) (func(), error) {
	g.begun.add(begun)
	return func() {}, nil
}

func TestPodWithASandboxHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := &openGate{}
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) { s.parts.Gate = gate })
		s.after(time.Second)
		if got := gate.begun.get(); !slices.Equal(got, []bool{false, true}) {
			t.Errorf("begun: %v, want false for the sandbox and true for the container", got)
		}
	})
}

func TestObserverSeesActions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen list[lifecycle.Kind]
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) {
			s.parts.Observer.ActionDone = func(info podactor.ActionInfo) {
				if info.UID != "u1" || info.Err != nil || info.Took != 0 {
					t.Errorf("%+v", info)
				}
				seen.add(info.Kind)
			}
		})
		s.after(time.Second)
		for _, kind := range []lifecycle.Kind{lifecycle.Admit, lifecycle.Pull, lifecycle.RunSandbox, lifecycle.StartContainer} {
			if !slices.Contains(seen.get(), kind) {
				t.Errorf("%s was not told of: %v", kind, seen.get())
			}
		}
	})
}
