package wire_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"nodekit.dev/node"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime"
)

// shownPods is a Watcher of pods that the test sets.
type shownPods struct {
	node.Watcher
	pods   []runtime.Pod
	err    error
	during func() // a look or list, once it is under way
}

func (s *shownPods) read() {
	if during := s.during; during != nil {
		s.during = nil
		during()
	}
}

func (s *shownPods) List(context.Context) ([]runtime.Pod, error) {
	pods, err := s.pods, s.err
	s.read()
	return pods, err
}

func (s *shownPods) Look(_ context.Context, req node.LookRequest) (node.LookResult, error) {
	res, err := node.LookResult{}, s.err
	for _, pod := range s.pods {
		if pod.UID == req.UID {
			res.Pod = pod
		}
	}
	s.read()
	return res, err
}

func withLog(id, name, restarts string, state runtime.ContainerState) runtime.Container {
	return runtime.Container{ID: id, Name: name, State: state, Annotations: map[string]string{runtime.AnnotationRestartCount: restarts}}
}

func web(containers ...runtime.Container) runtime.Pod {
	return runtime.Pod{UID: "1", Namespace: "default", Name: "web", Containers: containers}
}

// logBench is running logs that learn from pods which the test sets.
type logBench struct {
	*testing.T
	shown   *shownPods
	logs    *wire.RunningLogs
	watcher node.Watcher
	changes int
}

func newLogBench(t *testing.T) *logBench {
	b := &logBench{T: t, shown: &shownPods{}, logs: wire.NewRunningLogs("/logs")}
	b.watcher = b.logs.Watching(b.shown)
	b.logs.OnChange(func() { b.changes++ })
	return b
}

func (b *logBench) look(uid string) {
	b.Helper()
	_, err := b.watcher.Look(b.Context(), node.LookRequest{UID: uid})
	must(b, err)
}

func (b *logBench) list() {
	b.Helper()
	_, err := b.watcher.List(b.Context())
	must(b, err)
}

// wants the known logs, and that the rotator was told since the last call, or not.
func (b *logBench) wants(told bool, want ...string) {
	b.Helper()
	got, err := b.logs.RunningLogs(b.Context())
	must(b, err)
	var text []string
	for _, l := range got {
		text = append(text, l.ContainerID+" "+l.Path)
	}
	if !slices.Equal(text, want) {
		b.Errorf("logs %q, want %q", text, want)
	}
	if (b.changes > 0) != told {
		b.Errorf("%d changes told, want some: %v", b.changes, told)
	}
	b.changes = 0
}

func TestRunningLogsLearnFromLooks(t *testing.T) {
	b := newLogBench(t)
	b.wants(false)
	b.shown.pods = []runtime.Pod{web(
		withLog("c2", "app", "7", runtime.ContainerRunning), withLog("c1", "app", "6", runtime.ContainerExited),
		withLog("c3", "side", "0", runtime.ContainerRunning), withLog("c4", "late", "0", runtime.ContainerCreated),
	)}
	b.look("1")
	b.wants(true, "c2 /logs/default_web_1/app/7.log", "c3 /logs/default_web_1/side/0.log")
	b.look("1")
	b.wants(false, "c2 /logs/default_web_1/app/7.log", "c3 /logs/default_web_1/side/0.log")
	b.shown.pods = []runtime.Pod{web(withLog("c3", "side", "0", runtime.ContainerRunning))}
	b.look("1")
	b.wants(true, "c3 /logs/default_web_1/side/0.log")

	b.shown.err = errors.New("broken")
	if _, err := b.watcher.Look(t.Context(), node.LookRequest{UID: "1"}); !errors.Is(err, b.shown.err) {
		t.Errorf("error %v", err)
	}
	b.wants(false, "c3 /logs/default_web_1/side/0.log") // nothing new is known
	b.shown.pods, b.shown.err = nil, nil
	b.look("1")
	b.wants(true)
}

func TestRunningLogsLearnFromLists(t *testing.T) {
	b := newLogBench(t)
	b.shown.pods = []runtime.Pod{
		web(withLog("c1", "app", "0", runtime.ContainerRunning)),
		{UID: "2", Namespace: "default", Name: "db", Containers: []runtime.Container{withLog("d1", "db", "3", runtime.ContainerRunning)}},
	}
	b.list()
	b.wants(true, "d1 /logs/default_db_2/db/3.log", "c1 /logs/default_web_1/app/0.log")
	b.shown.pods = b.shown.pods[:1]
	b.list()
	b.wants(true, "c1 /logs/default_web_1/app/0.log")
	b.shown.err = errors.New("broken")
	if _, err := b.watcher.List(t.Context()); !errors.Is(err, b.shown.err) {
		t.Errorf("error %v", err)
	}
	b.wants(false, "c1 /logs/default_web_1/app/0.log")
}

// TestOldNewsOfLogs: a read that took long does not undo what one that began
// later showed.
func TestOldNewsOfLogs(t *testing.T) {
	for name, slow := range map[string]func(*logBench){
		"list": (*logBench).list,
		"look": func(b *logBench) { b.look("1") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newLogBench(t)
			b.shown.during = func() {
				b.shown.pods = []runtime.Pod{web(withLog("c1", "app", "0", runtime.ContainerRunning))}
				b.look("1")
			}
			slow(b) // of before the start
			b.wants(true, "c1 /logs/default_web_1/app/0.log")
		})
	}
}
