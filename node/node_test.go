package node_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node"
	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/runtimetest"
)

// source is a Source that sends what the test says.
type source struct {
	name string
	ch   chan node.SourceUpdate
}

func newSource(name string) *source { return &source{name, make(chan node.SourceUpdate)} }

func (s *source) Name() string { return s.name }

func (s *source) Run(ctx context.Context, updates chan<- node.SourceUpdate) error {
	for {
		select {
		case update := <-s.ch:
			select {
			case updates <- update:
			case <-ctx.Done():
				return ctx.Err()
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// stage is a node on a bench inside a bubble.
type stage struct {
	*testing.T
	*actortest.Bench
	cfg   node.Config
	parts node.Parts
	file  *source
	node  *node.Node
	done  chan error
	kill  context.CancelFunc
}

func newStage(t *testing.T, edit ...func(*stage)) *stage {
	t.Helper()
	b := actortest.New(t, runtimetest.Config{})
	s := &stage{T: t, Bench: b, file: newSource("file"), cfg: node.DefaultConfig()}
	s.cfg.RootDir = t.TempDir()
	s.parts = node.Parts{
		Engine: b, Watcher: b, Puller: b, Mounter: b.Mounts, PodDirs: b.Mounts, Specs: actortest.Specs{},
		Sources:     []node.Ordered[node.Source]{{Name: "file", Value: s.file}},
		StatusSinks: []node.StatusSink{b}, EventSinks: []node.EventSink{b},
	}
	for _, e := range edit {
		e(s)
	}
	s.start()
	t.Cleanup(s.end)
	return s
}

// start runs a new node.
func (s *stage) start() {
	s.Helper()
	n, err := node.New(s.cfg, s.parts)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	s.node, s.kill, s.done = n, cancel, make(chan error, 1)
	done := s.done
	go func() { done <- n.Run(ctx) }()
	synctest.Wait()
}

// end stops the node and waits for all its goroutines.
func (s *stage) end() {
	s.Helper()
	s.kill()
	if err := <-s.done; !errors.Is(err, context.Canceled) {
		s.Errorf("Run: %v", err)
	}
	s.done <- context.Canceled // for the next end
}

func (s *stage) after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// set sends the whole set of the file source.
func (s *stage) set(pods ...*corev1.Pod) {
	s.file.ch <- node.SourceUpdate{Pods: pods}
	synctest.Wait()
}

func (s *stage) wantRunning(uid string, n int) {
	s.Helper()
	if got := s.Running(s.T, uid); got != n {
		s.Errorf("pod %s: %d containers run, want %d", uid, got, n)
	}
}

func (s *stage) isReady() bool {
	select {
	case <-s.node.Ready():
		return true
	default:
		return false
	}
}

// static is a pod as a file source sends it.
func static(uid, name string, edit ...func(*corev1.Pod)) *corev1.Pod {
	return actortest.Pod(uid, name, append([]func(*corev1.Pod){func(p *corev1.Pod) {
		p.Annotations = map[string]string{runtime.AnnotationConfigSource: "file"}
	}}, edit...)...)
}

func TestPodsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		a, b := static("a", "a"), static("b", "b")
		s.set(a, b)
		s.wantRunning("a", 1)
		s.wantRunning("b", 1)
		if pods := s.node.Pods(); len(pods) != 2 || pods[0].Source != "file" || !pods[0].Static {
			t.Errorf("pods %+v", pods)
		}
		if view, ok := s.node.Pod("a"); !ok || view.Phase != lifecycle.Running || view.Status.Phase != corev1.PodRunning {
			t.Errorf("pod a: %v %+v", ok, view)
		}
		if trace, ok, err := s.node.Trace("a"); !ok || err != nil || len(trace.Entries) == 0 {
			t.Errorf("trace of a: %v, %v, %d entries", ok, err, len(trace.Entries))
		}
		s.set(b)
		s.after(time.Second)
		if _, ok := s.node.Pod("a"); ok {
			t.Error("a is still there")
		}
		s.wantRunning("b", 1)
		s.set()
		s.after(time.Second)
		s.CheckEmpty()
	})
}

func TestPartialUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.set(static("a", "a"))
		s.file.ch <- node.SourceUpdate{Partial: true, Pods: []*corev1.Pod{static("b", "b")}}
		s.after(time.Second)
		s.wantRunning("a", 1)
		s.wantRunning("b", 1)
		s.file.ch <- node.SourceUpdate{Partial: true, Removed: []types.UID{"a", "never heard of"}}
		s.after(time.Second)
		if _, ok := s.node.Pod("a"); ok {
			t.Error("a is still there")
		}
		s.wantRunning("b", 1)
	})
}

func TestRestartLeavesContainersAndReadinessAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.set(static("a", "a"))
		before := s.Seen(t, "a")
		s.end()
		s.wantRunning("a", 1)
		told := len(s.Statuses("a"))
		s.start()
		s.after(time.Minute) // the source is slow to come back
		s.wantRunning("a", 1)
		s.set(static("a", "a"))
		s.after(time.Minute)
		after := s.Seen(t, "a")
		if len(after.Containers) != 1 || after.Containers[0].ID != before.Containers[0].ID {
			t.Errorf("before %+v, after %+v", before.Containers, after.Containers)
		}
		for _, update := range s.Statuses("a")[told:] {
			if update.Status.Phase != corev1.PodRunning {
				t.Errorf("status flapped: %+v", update.Status)
			}
		}
	})
}

func TestOneHungPodLeavesTheOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.Fault(runtimetest.Fault{Kind: runtimetest.Hang, Method: runtimetest.MethodLook, UID: "a"})
		s.set(static("a", "a"), static("b", "b"))
		s.after(10 * time.Minute)
		s.wantRunning("b", 1)
		if !s.isReady() {
			t.Error("the node is not ready")
		}
		s.set()
		s.after(time.Minute)
		if _, ok := s.node.Pod("b"); ok {
			t.Error("b is still there")
		}
		s.ClearFaults()
		s.after(5 * time.Minute)
		s.CheckEmpty()
	})
}

func TestRapidStaticUpdatesConvergeToTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.Script("app", runtimetest.Behaviour{TermDelay: 5 * time.Second})
		s.set(static("v0", "web"))
		s.wantRunning("v0", 1)
		for i := 1; i <= 9; i++ {
			s.set(static(fmt.Sprintf("v%d", i), "web"))
		}
		s.after(time.Second)
		s.wantRunning("v0", 1) // still on its way out
		s.wantRunning("v9", 0)
		s.after(10 * time.Second)
		s.wantRunning("v9", 1)
		if pods := s.node.Pods(); len(pods) != 1 || pods[0].UID != "v9" {
			t.Errorf("pods %+v", pods)
		}
		if n := s.Calls(runtimetest.MethodRunSandbox); n != 2 {
			t.Errorf("%d sandboxes, want 2: the versions between were never to start", n)
		}
	})
}

func TestDeleteAndReAddOfTheSameUID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.Script("app", runtimetest.Behaviour{TermDelay: 5 * time.Second})
		pod := static("a", "web")
		s.set(pod)
		first := s.Seen(t, "a").Containers[0].ID
		for range 3 {
			s.set()
			s.set(pod)
		}
		s.after(time.Second)
		if now := s.Seen(t, "a").Containers; len(now) != 1 || now[0].ID != first {
			t.Fatalf("containers %+v", now)
		}
		if pods := s.node.Pods(); len(pods) != 2 {
			t.Errorf("pods %+v, want the one that goes and the one that waits", pods)
		}
		s.after(10 * time.Second)
		if now := s.Seen(t, "a").Containers; len(now) != 1 || now[0].ID == first || now[0].State != runtime.ContainerRunning {
			t.Errorf("containers %+v, want a new one that runs", now)
		}
		s.set()
		s.set(pod)
		s.set()
		s.after(time.Minute)
		s.CheckEmpty()
		if pods := s.node.Pods(); len(pods) != 0 {
			t.Errorf("pods %+v", pods)
		}
	})
}

func TestManifestThatChangedWhileTheAgentWasDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newSource("api") // never delivers
		s := newStage(t, func(s *stage) {
			s.parts.Sources = append(s.parts.Sources, node.Ordered[node.Source]{Name: "api", Value: api})
			s.Script("app", runtimetest.Behaviour{TermDelay: 5 * time.Second})
		})
		s.set(static("v1", "web"))
		s.end()
		s.start()
		s.set(static("v2", "web"))
		s.after(time.Second)
		s.wantRunning("v1", 1)
		s.wantRunning("v2", 0)
		s.after(10 * time.Second)
		s.wantRunning("v2", 1)
		if n := len(s.Seen(t, "v1").Containers); n != 0 {
			t.Errorf("%d containers of the old version are left", n)
		}
	})
}

func TestOrphansGoOnceAllSourcesHaveReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newSource("api")
		s := newStage(t, func(s *stage) {
			s.parts.Sources = append(s.parts.Sources, node.Ordered[node.Source]{Name: "api", Value: api})
		})
		api.ch <- node.SourceUpdate{Pods: []*corev1.Pod{actortest.Pod("p", "p")}}
		s.set(static("a", "a"), static("b", "b"))
		s.Mounts.Put("on-disk-only", "data")
		s.after(time.Second)
		s.end()
		s.start()
		s.set(static("b", "b"))
		s.after(10 * time.Minute)
		s.wantRunning("a", 1) // perhaps the API server names it
		if s.isReady() {
			t.Error("ready before all sources reported")
		}
		api.ch <- node.SourceUpdate{}
		s.after(time.Minute)
		if !s.isReady() {
			t.Error("not ready")
		}
		s.wantRunning("b", 1)
		for _, uid := range []string{"a", "p"} {
			if !s.Seen(t, uid).Empty() {
				t.Errorf("orphan %s is still there", uid)
			}
		}
		if dirs, _ := s.Mounts.ListPodDirs(t.Context()); slices.Contains(dirs, "on-disk-only") {
			t.Errorf("directories %v", dirs)
		}
		if pods := s.node.Pods(); len(pods) != 1 {
			t.Errorf("pods %+v", pods)
		}
	})
}

func TestUnclearSourceKeepsItsPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := func(source string) func(*corev1.Pod) {
			return func(p *corev1.Pod) { p.Annotations[runtime.AnnotationConfigSource] = source }
		}
		http := newSource("http")
		s := newStage(t, func(s *stage) {
			s.parts.Sources = append(s.parts.Sources, node.Ordered[node.Source]{Name: "http", Value: http})
		})
		s.set(static("torn", "torn"), static("good", "good"), static("gone", "gone"))
		http.ch <- node.SourceUpdate{Pods: []*corev1.Pod{static("web", "web", from("http"))}}
		s.after(time.Second)
		s.end()
		s.Mounts.Put("torn", "data")
		s.Mounts.Put("dead", "data") // its sandbox did not outlive a power loss
		s.start()
		s.file.ch <- node.SourceUpdate{Pods: []*corev1.Pod{static("good", "good")}, Unclear: true}
		http.ch <- node.SourceUpdate{}
		s.after(10 * time.Minute)
		if !s.isReady() {
			t.Error("not ready")
		}
		s.wantRunning("torn", 1)
		s.wantRunning("good", 1)
		if !s.Seen(t, "web").Empty() {
			t.Error("the orphan of a clear source is still there")
		}
		dirs, _ := s.Mounts.ListPodDirs(t.Context())
		if !slices.Contains(dirs, "torn") || !slices.Contains(dirs, "dead") {
			t.Errorf("directories that are left: %v", dirs)
		}
		before := s.Seen(t, "torn").Containers[0].ID
		s.set(static("good", "good"), static("torn", "torn"))
		s.after(time.Minute)
		if after := s.Seen(t, "torn").Containers; len(after) != 1 || after[0].ID != before {
			t.Errorf("the pod of the mended manifest: %+v", after)
		}
		if !s.Seen(t, "gone").Empty() {
			t.Error("the orphan is still there although the source is clear")
		}
		if dirs, _ := s.Mounts.ListPodDirs(t.Context()); !slices.Equal(dirs, []string{"torn"}) {
			t.Errorf("directories that are left: %v", dirs)
		}
	})
}

func TestUnknownPodThatTurnsUpLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.set()
		config := runtimetest.SandboxFor("default", "stray", "stray", 0)
		if _, err := s.RunSandbox(t.Context(), podactor.RunSandboxRequest{Config: config}); err != nil {
			t.Fatal(err)
		}
		s.after(time.Minute)
		s.CheckEmpty()
	})
}

func TestCompletedStaticPodRunsAgainOnlyWhenItsManifestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.Script("app", runtimetest.Behaviour{RunFor: time.Second})
		never := func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }
		s.set(static("a", "job", never))
		s.after(time.Minute)
		s.set(static("a", "job", never)) // read again, unchanged
		s.after(time.Minute)
		if n := s.Calls(runtimetest.MethodStartContainer); n != 1 {
			t.Fatalf("%d starts, want 1", n)
		}
		s.set(static("a", "job", never, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "registry.test/app:2" }))
		s.after(time.Minute)
		if n := s.Calls(runtimetest.MethodStartContainer); n != 2 {
			t.Errorf("%d starts, want 2", n)
		}
	})
}

func TestDeletedAPIPodStaysGoneWhileItsSourceStillHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newSource("api")
		s := newStage(t, func(s *stage) {
			s.parts.Sources = []node.Ordered[node.Source]{{Name: "api", Value: api}}
		})
		api.ch <- node.SourceUpdate{Pods: []*corev1.Pod{actortest.Pod("p", "p")}}
		s.after(time.Second)
		s.wantRunning("p", 1)
		deleted := func(p *corev1.Pod) {
			grace := int64(5)
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now().Add(5 * time.Second)}, &grace
		}
		for range 3 {
			api.ch <- node.SourceUpdate{Pods: []*corev1.Pod{actortest.Pod("p", "p", deleted)}}
			s.after(time.Minute)
		}
		s.CheckEmpty()
		if last := s.Last("p"); last.Phase != lifecycle.Finished || last.Static {
			t.Errorf("last status %+v", last)
		}
		if n := s.Calls(runtimetest.MethodRunSandbox); n != 1 {
			t.Errorf("%d sandboxes, want 1", n)
		}
	})
}

// slowEngine makes every start take a second.
type slowEngine struct {
	*actortest.Bench
	mu    sync.Mutex
	order []string
}

func (e *slowEngine) RunSandbox(ctx context.Context, req podactor.RunSandboxRequest) (podactor.RunSandboxResult, error) {
	<-time.After(time.Second)
	return e.Bench.RunSandbox(ctx, req)
}

func (e *slowEngine) StartContainer(ctx context.Context, req podactor.StartContainerRequest) (podactor.StartContainerResult, error) {
	<-time.After(time.Second)
	e.mu.Lock()
	e.order = append(e.order, req.Sandbox.Name)
	e.mu.Unlock()
	return e.Bench.StartContainer(ctx, req)
}

func TestBurstRunsHalfOfThePodsInHalfOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &slowEngine{}
		s := newStage(t, func(s *stage) {
			engine.Bench = s.Bench
			s.parts.Engine = engine
			s.cfg.StartWidth = 2
		})
		var pods, oldestFirst = []*corev1.Pod{}, []string{}
		born := time.Now()
		for i := range 50 {
			name := fmt.Sprintf("p%02d", i)
			pods = append(pods, static(name, name, func(p *corev1.Pod) {
				p.CreationTimestamp = metav1.NewTime(born.Add(time.Duration(i) * time.Second))
			}))
			oldestFirst = append(oldestFirst, name)
		}
		slices.Reverse(pods) // the order in the update does not matter
		s.set(pods...)
		up := func() (n int) {
			for _, pod := range s.node.Pods() {
				if pod.Status.Phase == corev1.PodRunning {
					n++
				}
			}
			return n
		}
		s.after(26 * time.Second) // of the 50 s that 100 calls of 1 s take, two at a time
		if n := up(); n < 23 || n > 26 {
			t.Errorf("%d of 50 pods run after half of the time", n)
		}
		s.after(25 * time.Second)
		if n := up(); n != 50 {
			t.Errorf("%d of 50 pods run after all of the time", n)
		}
		for place, name := range engine.order {
			if place < s.cfg.StartWidth+2 {
				continue // these raced for the open gate
			}
			if age := slices.Index(oldestFirst, name); max(place-age, age-place) > 8 {
				t.Errorf("the pod of age %d started as number %d", age, place)
			}
		}
	})
}

func TestDrainOnStop(t *testing.T) {
	for name, tc := range map[string]struct {
		takes time.Duration
		left  int
	}{"in time": {5 * time.Second, 0}, "killed at the limit": {time.Hour, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, func(s *stage) {
					s.cfg.DrainOnStop, s.cfg.DrainTimeout = true, 20*time.Second
					s.Script("app", runtimetest.Behaviour{TermDelay: tc.takes})
				})
				s.set(static("a", "a"), static("b", "b"))
				start := time.Now()
				s.end()
				if took, want := time.Since(start), min(tc.takes, 18*time.Second); took != want {
					t.Errorf("stopped after %v, want %v", took, want)
				}
				s.wantRunning("a", 0)
				s.wantRunning("b", 0)
				if len(s.Seen(t, "a").Containers) != 1 {
					t.Error("a drain keeps dead containers")
				}
			})
		})
	}
}

func TestStopPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.set(static("a", "a"))
		stop := lifecycle.Stop{
			Reason: lifecycle.StopEvicted, StatusReason: "Evicted", Message: "low on memory", At: time.Now(), Grace: time.Second,
		}
		if !s.node.StopPod("a", stop) || s.node.StopPod("nobody", stop) {
			t.Error("StopPod does not know its pods")
		}
		s.after(time.Minute)
		s.wantRunning("a", 0)
		if last := s.Last("a").Status; last.Phase != corev1.PodFailed || last.Reason != "Evicted" {
			t.Errorf("status %+v", last)
		}
	})
}

// panicky panics where it is told to, as often as it is told to.
type panicky struct {
	node.NoHook
	at   string
	left atomic.Int32
}

func (p *panicky) maybe(at string) error {
	if at == p.at && p.left.Add(-1) >= 0 {
		panic("vendor bug in " + at)
	}
	return nil
}

func (p *panicky) Prepare(context.Context, *corev1.Pod) error { return p.maybe("Prepare") }
func (p *panicky) Started(context.Context, *corev1.Pod, string, string) error {
	return p.maybe("Started")
}
func (p *panicky) Stopping(context.Context, *corev1.Pod) error { return p.maybe("Stopping") }
func (p *panicky) Cleanup(context.Context, *corev1.Pod) error  { return p.maybe("Cleanup") }

func TestPanicInAHookIsAFailureOfThatStep(t *testing.T) {
	for _, at := range []string{"Prepare", "Started", "Stopping", "Cleanup"} {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hook := &panicky{at: at}
				hook.left.Store(2)
				s := newStage(t, func(s *stage) {
					s.parts.Hooks = []node.Ordered[node.Hook]{{Name: "buggy", Value: hook}}
				})
				s.set(static("a", "a"))
				s.after(time.Minute)
				s.wantRunning("a", 1)
				s.set()
				s.after(time.Minute)
				s.CheckEmpty()
				if left := hook.left.Load(); left >= 0 && at != "Stopping" {
					t.Errorf("the hook did not get to its end: %d", left)
				}
			})
		})
	}
}

func TestMutators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, func(s *stage) {
			s.parts.Mutators = []node.Ordered[node.Mutator]{
				{Name: "a-second", After: []string{"z-first"}, Value: mutateFunc(func(p *corev1.Pod) error {
					p.Labels["order"] += "2"
					return nil
				})},
				{Name: "z-first", Value: mutateFunc(func(p *corev1.Pod) error {
					if p.Name == "bad" {
						return errors.New("not on this node")
					}
					p.Labels = map[string]string{"order": "1"}
					return nil
				})},
			}
		})
		s.set(static("a", "good"), static("b", "bad"))
		s.after(time.Second)
		if view, _ := s.node.Pod("a"); view.Pod.Labels["order"] != "12" {
			t.Errorf("labels %v", view.Pod.Labels)
		}
		if last := s.Last("b").Status; last.Phase != corev1.PodFailed || last.Message != "mutator z-first: not on this node" {
			t.Errorf("status %+v", last)
		}
	})
}

type mutateFunc func(*corev1.Pod) error

func (f mutateFunc) Mutate(pod *corev1.Pod) (*corev1.Pod, error) {
	pod = pod.DeepCopy()
	return pod, f(pod)
}

func TestNetworkThatComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, func(s *stage) { s.SetNetwork("no CNI configuration") })
		s.set(static("a", "a"))
		s.after(time.Minute)
		s.wantRunning("a", 0)
		s.SetNetwork("")
		s.after(2 * time.Second)
		s.wantRunning("a", 1)
	})
}

func TestRuntimeThatIsDownAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, func(s *stage) { s.Down() })
		s.after(time.Minute)
		if err := s.Up(); err != nil {
			t.Fatal(err)
		}
		s.after(2 * time.Minute)
		s.set(static("a", "a"))
		s.after(time.Second)
		s.wantRunning("a", 1)
	})
}

// flaky is a source that fails and panics before it works.
type flaky struct {
	runs atomic.Int32
	pods []*corev1.Pod
}

func (f *flaky) Name() string { return "flaky" }

func (f *flaky) Run(ctx context.Context, updates chan<- node.SourceUpdate) error {
	switch f.runs.Add(1) {
	case 1:
		return errors.New("no such folder")
	case 2:
		panic("a bug")
	}
	updates <- node.SourceUpdate{Pods: f.pods}
	<-ctx.Done()
	return ctx.Err()
}

func TestSourceThatFailsIsStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, func(s *stage) {
			s.parts.Sources = []node.Ordered[node.Source]{
				{Name: "flaky", Value: &flaky{pods: []*corev1.Pod{static("a", "a")}}},
			}
		})
		s.after(time.Minute)
		s.wantRunning("a", 1)
	})
}

func TestTwoNodesInOneProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := newStage(t), newStage(t)
		one.set(static("a", "a"))
		two.set(static("a", "a"), static("b", "b"))
		one.set()
		one.after(time.Second)
		one.CheckEmpty()
		two.wantRunning("a", 1)
		two.wantRunning("b", 1)
	})
}

func TestReadyCallsBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		s := newStage(t, func(s *stage) { s.cfg.OnReady = func() { calls.Add(1) } })
		if s.isReady() {
			t.Error("ready before the source delivered")
		}
		s.set()
		s.set(static("a", "a"))
		s.after(time.Minute)
		if !s.isReady() || calls.Load() != 1 {
			t.Errorf("ready %v, called %d times", s.isReady(), calls.Load())
		}
		if err := s.node.Run(t.Context()); err == nil {
			t.Error("a node ran twice")
		}
	})
}

func TestReadyPolicyOfAVendor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, func(s *stage) {
			s.cfg.ReadyWhen = func(in node.ReadyInput) bool { return in.Waited >= time.Minute }
		})
		s.after(59 * time.Second)
		early := s.isReady()
		s.after(2 * time.Second)
		if early || !s.isReady() {
			t.Errorf("ready %v, then %v; want it after a minute", early, s.isReady())
		}
	})
}

func TestPodWithAnImpossibleUIDDisturbsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.set(static("../../etc", "evil"), static("a", "a"))
		s.set(static("../../etc", "evil"), static("a", "a"))
		s.set(static("a", "a"))
		s.after(time.Second)
		s.wantRunning("a", 1)
		if pods := s.node.Pods(); len(pods) != 1 {
			t.Errorf("pods %+v", pods)
		}
	})
}

func TestPodOfTwoSourcesBelongsToTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := newSource("http")
		s := newStage(t, func(s *stage) {
			s.parts.Sources = append(s.parts.Sources, node.Ordered[node.Source]{Name: "http", Value: other})
		})
		s.set(static("a", "a"))
		other.ch <- node.SourceUpdate{Pods: []*corev1.Pod{static("a", "a")}}
		other.ch <- node.SourceUpdate{}
		s.after(time.Minute)
		s.wantRunning("a", 1)
		if view, _ := s.node.Pod("a"); view.Source != "file" {
			t.Errorf("source %q", view.Source)
		}
	})
}
