package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// report is what one wants to know when a test fails.
func (e *env) report() string {
	var b strings.Builder
	pods := e.pods.All()
	fmt.Fprintf(&b, "%d pods, the first of them:\n", len(pods))
	for _, p := range pods[:min(len(pods), 60)] {
		fmt.Fprintf(&b, "pod %s/%s: %s\n", p.Namespace, p.Name, summary(p))
	}
	for _, n := range e.Nodes {
		if n.Agent == nil {
			continue
		}
		fmt.Fprintf(&b, "--- the log of %s ends with:\n%s\n", n.Name, n.Agent.Log(25))
	}
	return b.String()
}

// keepLogs copies the logs of all parts out of the folders that go with the
// test, and says where they are.
func (e *env) keepLogs(t *testing.T) {
	dir, err := filepath.Abs(filepath.Join("../../../_output/cluster", strings.ReplaceAll(t.Name(), "/", "_")))
	if err != nil {
		t.Error(err)
		return
	}
	sources := []string{filepath.Join(e.Plane.Dir(), "*.log")}
	for _, n := range e.Nodes {
		sources = append(sources, filepath.Join(n.Bed.Dir, "*.log"))
	}
	for i, pattern := range sources {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err == nil {
				err = os.MkdirAll(dir, 0o755)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d-%s", i, filepath.Base(file))), text, 0o644)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	t.Logf("the logs of all parts are in %s", dir)
}
