package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// logs: the stock layout, a file per start, and links for log collectors.
func logs(t *testing.T, e *env) {
	e.apply(t, newPod("logs", shell("main", "echo to stdout; echo to stderr >&2; "+untilTerm)))
	pod := e.until(t, "logs", ready)
	dir := filepath.Join(e.bed.PodLogs, fmt.Sprintf("default_logs-bed_%s", pod.UID), "main")
	wantLog(t, filepath.Join(dir, "0.log"), " stdout F to stdout\n", " stderr F to stderr\n")
	first := logLink(t, e, "logs", "main")

	e.crash(t, pod, "main")
	pod = e.until(t, "logs", restarts("main", 1))
	wantLog(t, filepath.Join(dir, "1.log"), " stdout F to stdout\n")
	eventually(t, patience, func() error {
		if second := logLink(t, e, "logs", "main"); second == first {
			return fmt.Errorf("the link is still %s", second)
		}
		return nil
	})

	e.remove(t, "logs")
	e.gone(t, pod)
	eventually(t, patience, func() error {
		left, _ := filepath.Glob(filepath.Join(e.bed.LogLinks, "logs-bed_default_*"))
		if _, err := os.Stat(dir); err == nil {
			left = append(left, dir)
		}
		if len(left) > 0 {
			return fmt.Errorf("left over: %v", left)
		}
		return nil
	})
}

func wantLog(t *testing.T, path string, want ...string) {
	t.Helper()
	eventually(t, patience, func() error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, w := range want {
			if !strings.Contains(string(text), w) {
				return fmt.Errorf("%s has no %q: %q", path, w, text)
			}
		}
		return nil
	})
}

// logLink is where the link to the newest log of a container of the pod leads to.
func logLink(t *testing.T, e *env, pod, container string) string {
	t.Helper()
	pattern := filepath.Join(e.bed.LogLinks, fmt.Sprintf("%s-bed_default_%s-*.log", pod, container))
	var newest string // 1.log sorts after 0.log
	eventually(t, patience, func() error {
		links, _ := filepath.Glob(pattern)
		for _, link := range links {
			to, err := os.Readlink(link)
			if err == nil && strings.HasPrefix(to, e.bed.PodLogs) && (newest == "" || to > newest) {
				newest = to
			}
		}
		if newest == "" {
			return fmt.Errorf("no link %s among %v", pattern, links)
		}
		return nil
	})
	return newest
}
