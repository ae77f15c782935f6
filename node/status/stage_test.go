package status_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/node"
	"nodekit.dev/node/apipods"
	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/internal/podapitest"
	"nodekit.dev/node/status"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/runtimetest"
)

// stage is a whole node on a strict runtime and an API server in memory, inside
// of a bubble.
type stage struct {
	*testing.T
	*actortest.Bench
	api    *podapitest.Server
	static *manifests
	agent  *agent
}

// manifests is a source of static pods; it keeps its pods over restarts.
type manifests struct {
	pods    []*corev1.Pod
	unclear bool // something could not be read
	set     chan struct{}
}

func (m *manifests) Name() string { return "file" }

func (m *manifests) Run(ctx context.Context, updates chan<- node.SourceUpdate) error {
	for {
		select {
		case updates <- node.SourceUpdate{Pods: m.pods, Unclear: m.unclear}:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case <-m.set:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// agent is what dies when the agent is killed.
type agent struct {
	node   *node.Node
	writer *status.Writer
	kill   context.CancelFunc
	done   chan error
}

func newStage(t *testing.T, edit ...func(*stage)) *stage {
	t.Helper()
	s := &stage{
		T: t, Bench: actortest.New(t, runtimetest.Config{}), api: podapitest.New(),
		static: &manifests{set: make(chan struct{})},
	}
	s.api.PutNode("worker-1")
	for _, e := range edit {
		e(s)
	}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *stage) start() {
	s.Helper()
	log := slog.New(slog.NewTextHandler(s.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	client := s.api.Client()
	writer, err := status.New(status.DefaultConfig("worker-1"), status.Parts{API: client, Log: log.With("part", "status")})
	if err != nil {
		s.Fatal(err)
	}
	source, err := apipods.New(apipods.DefaultConfig("worker-1"), client, writer, log.With("part", "apipods"))
	if err != nil {
		s.Fatal(err)
	}
	cfg := node.DefaultConfig()
	cfg.RootDir = s.TempDir()
	cfg.Rules.HostIPs, cfg.Rules.RuntimeName = []string{"10.0.0.1"}, "containerd"
	n, err := node.New(cfg, node.Parts{
		Engine: s.Bench, Watcher: s.Bench, Puller: s.Bench, Mounter: s.Mounts, PodDirs: s.Mounts, Specs: actortest.Specs{},
		Sources:     []node.Ordered[node.Source]{{Name: source.Name(), Value: source}, {Name: "file", Value: s.static}},
		StatusSinks: []node.StatusSink{writer}, Log: log.With("part", "node"),
	})
	if err != nil {
		s.Fatal(err)
	}
	writer.Attach(n)
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	s.agent = &agent{node: n, writer: writer, kill: cancel, done: make(chan error, 1)}
	group := tasks.New(ctx)
	group.Go("node", n.Run)
	group.Go("status", writer.Run)
	done := s.agent.done
	go func() { done <- group.Wait() }()
	synctest.Wait()
}

// stop kills the agent; what runs runs on.
func (s *stage) stop() {
	s.Helper()
	if s.agent == nil {
		return
	}
	s.agent.kill()
	if err := <-s.agent.done; err != nil && !errors.Is(err, context.Canceled) {
		s.Errorf("agent: %v", err)
	}
	s.agent = nil
}

func (s *stage) restart() {
	s.Helper()
	s.stop()
	s.start()
}

func (s *stage) after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// manifest replaces the static pods.
func (s *stage) manifest(pods ...*corev1.Pod) {
	s.static.pods = pods
	if s.agent != nil {
		s.static.set <- struct{}{}
	}
	synctest.Wait()
}

// wrote lists what was written since the mark, as "PATCH web", without failures.
func (s *stage) wrote(mark int) (list []string) {
	for _, w := range s.api.Writes()[mark:] {
		name := strings.TrimSuffix(w.Path[strings.Index(w.Path, "/pods")+5:], "/status")
		list = append(list, strings.TrimSpace(w.Verb+" "+strings.TrimPrefix(name, "/")))
	}
	return list
}

func (s *stage) mark() int { return len(s.api.Writes()) }

func (s *stage) wantPhase(name string, want corev1.PodPhase) *corev1.Pod {
	s.Helper()
	pod := s.api.Pod("default", name)
	if pod == nil {
		s.Fatalf("pod %s is gone, want it %s", name, want)
	}
	if pod.Status.Phase != want {
		s.Fatalf("pod %s is %s, want %s: %+v", name, pod.Status.Phase, want, pod.Status)
	}
	return pod
}

func (s *stage) wantGone(name string) {
	s.Helper()
	if pod := s.api.Pod("default", name); pod != nil {
		s.Fatalf("pod %s is there still: %+v", name, pod.Status)
	}
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

// pod is a pod of the API server, as the scheduler leaves it.
func pod(uid, name string, edit ...func(*corev1.Pod)) *corev1.Pod {
	p := actortest.Pod(uid, name, func(p *corev1.Pod) {
		p.Spec.NodeName = "worker-1"
		p.Status = corev1.PodStatus{
			Phase: corev1.PodPending, QOSClass: corev1.PodQOSBestEffort,
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now())}},
		}
	})
	for _, e := range edit {
		e(p)
	}
	return p
}

func policy(p corev1.RestartPolicy) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.RestartPolicy = p }
}

// manifestPod is a static pod as a source of manifests makes it.
func manifestPod(uid, name string, edit ...func(*corev1.Pod)) *corev1.Pod {
	p := actortest.Pod(uid, name, func(p *corev1.Pod) {
		p.UID = types.UID(uid)
		p.Spec.NodeName = "worker-1"
		p.Annotations = map[string]string{
			runtime.AnnotationConfigSource: "file", runtime.AnnotationConfigHash: uid, runtime.AnnotationConfigSeen: "today",
		}
		p.Status.Phase = corev1.PodPending
	})
	for _, e := range edit {
		e(p)
	}
	return p
}

// transitions lists how a condition of a pod changed at the API server, such as
// "False True False".
func (s *stage) transitions(uid types.UID, kind corev1.PodConditionType) string {
	var list []string
	for _, e := range s.api.Events() {
		if e.Pod.UID != uid {
			continue
		}
		c := condition(e.Pod, kind)
		at := fmt.Sprintf("%s@%s", c.Status, c.LastTransitionTime.Format("15:04:05"))
		if c.Status != "" && (len(list) == 0 || list[len(list)-1] != at) {
			list = append(list, at)
		}
	}
	return strings.Join(list, " ")
}
