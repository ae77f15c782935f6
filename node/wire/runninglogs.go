package wire

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"nodekit.dev/node"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/logs"
)

// RunningLogs knows which logs are written to now, for the log rotator. It
// learns that from what the node reads of the runtime anyway: there is a look
// after each start and each end of a container, so that nobody has to ask the
// runtime again. Safe for concurrent use; see [NewRunningLogs].
type RunningLogs struct {
	podLogsDir string

	mu      sync.Mutex
	reads   uint64 // begun so far
	pods    map[string]podLogs
	changed func()
}

// podLogs is what one read showed of a pod.
type podLogs struct {
	read uint64
	logs []logs.Log
}

// NewRunningLogs makes one that knows of no log yet.
func NewRunningLogs(podLogsDir string) *RunningLogs {
	return &RunningLogs{podLogsDir: podLogsDir, pods: map[string]podLogs{}, changed: func() {}}
}

// OnChange has changed called, which must not block, after each change: to
// refresh the rotator.
func (l *RunningLogs) OnChange(changed func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed = changed
}

// RunningLogs lists the logs by path. It asks nobody.
func (l *RunningLogs) RunningLogs(context.Context) ([]logs.Log, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []logs.Log
	for _, pod := range l.pods {
		out = append(out, pod.logs...)
	}
	slices.SortFunc(out, func(a, b logs.Log) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// Watching is a watcher whose reads l learns from.
func (l *RunningLogs) Watching(w node.Watcher) node.Watcher { return logWatcher{w, l} }

type logWatcher struct {
	node.Watcher
	logs *RunningLogs
}

func (w logWatcher) Look(ctx context.Context, req node.LookRequest) (node.LookResult, error) {
	read := w.logs.begin()
	res, err := w.Watcher.Look(ctx, req)
	if err == nil {
		w.logs.looked(read, req.UID, res.Pod)
	}
	return res, err
}

func (w logWatcher) List(ctx context.Context) ([]runtime.Pod, error) {
	read := w.logs.begin()
	pods, err := w.Watcher.List(ctx)
	if err == nil {
		w.logs.listed(read, pods)
	}
	return pods, err
}

// begin numbers a read: what began earlier does not overwrite what began later.
func (l *RunningLogs) begin() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	return l.reads
}

func (l *RunningLogs) looked(read uint64, uid string, pod runtime.Pod) {
	l.mu.Lock()
	changed := l.put(read, uid, pod)
	tell := l.changed
	l.mu.Unlock()
	if changed {
		tell()
	}
}

func (l *RunningLogs) listed(read uint64, pods []runtime.Pod) {
	l.mu.Lock()
	changed := false
	listed := make(map[string]bool, len(pods))
	for _, pod := range pods {
		listed[pod.UID] = true
		changed = l.put(read, pod.UID, pod) || changed
	}
	for uid, known := range l.pods {
		if !listed[uid] && known.read < read {
			delete(l.pods, uid)
			changed = true
		}
	}
	tell := l.changed
	l.mu.Unlock()
	if changed {
		tell()
	}
}

// put takes over what a read showed of a pod, unless a later one is known. It
// reports whether that changed anything. The caller holds the lock.
func (l *RunningLogs) put(read uint64, uid string, pod runtime.Pod) (changed bool) {
	before := l.pods[uid]
	if before.read > read {
		return false
	}
	now := l.running(pod)
	if pod.Empty() {
		delete(l.pods, uid)
	} else {
		l.pods[uid] = podLogs{read, now}
	}
	return !slices.Equal(before.logs, now)
}

// running works out the paths from the stock labels and annotations, as a list
// of containers does not hold them.
func (l *RunningLogs) running(pod runtime.Pod) []logs.Log {
	dir := podLogDir(l.podLogsDir, pod.Namespace, pod.Name, pod.UID)
	var out []logs.Log
	for _, c := range pod.Containers {
		if c.State != runtime.ContainerRunning {
			continue
		}
		name := c.Annotations[runtime.AnnotationRestartCount] + ".log"
		out = append(out, logs.Log{ContainerID: c.ID, Path: filepath.Join(dir, c.Name, name)})
	}
	return out
}
