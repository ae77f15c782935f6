package wire

import (
	"context"
	"path/filepath"

	"nodekit.dev/node"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/logs"
)

// RunningLogs tells the log rotator which logs are written to now.
func RunningLogs(w node.Watcher, podLogsDir string) logs.Containers {
	return runningLogs{w, podLogsDir}
}

type runningLogs struct {
	watcher    node.Watcher
	podLogsDir string
}

// RunningLogs works out the paths from the stock labels and annotations, as a
// list of containers does not hold them.
func (r runningLogs) RunningLogs(ctx context.Context) ([]logs.Log, error) {
	pods, err := r.watcher.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []logs.Log
	for _, pod := range pods {
		dir := podLogDir(r.podLogsDir, pod.Namespace, pod.Name, pod.UID)
		for _, c := range pod.Containers {
			if c.State != runtime.ContainerRunning {
				continue
			}
			name := c.Annotations[runtime.AnnotationRestartCount] + ".log"
			out = append(out, logs.Log{ContainerID: c.ID, Path: filepath.Join(dir, c.Name, name)})
		}
	}
	return out, nil
}
