package agent

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLogRotation: what a container prints in bursts ends up in files of a
// bounded size, with no line lost, torn or doubled, and its files go with it.
func TestLogRotation(t *testing.T) { eachContainerd(t, logRotation) }

func logRotation(t *testing.T, version string) {
	e := newEnv(t, version, map[string]any{
		"containerLogMaxSize": "64Ki", "containerLogMaxFiles": 1000,
		"crashLoopBackOff": map[string]any{"maxContainerRestartPeriod": "1s"},
	})
	const lines = 20000
	script := fmt.Sprintf("trap 'exit 0' TERM; i=0; while [ $i -lt %d ]; do echo line $i; i=$((i+1)); [ $((i%%2000)) != 0 ] || sleep 0.3; done; echo end >&2; ", lines)
	e.apply(t, newPod("rotation", shell("main", script+"sleep 10000 & wait")))
	pod := e.until(t, "rotation", ready)
	dir := filepath.Join(e.bed.PodLogs, fmt.Sprintf("default_rotation-bed_%s", pod.UID), "main")
	log := filepath.Join(dir, "0.log")

	var text string
	eventually(t, patience, func() (err error) {
		text, err = wholeLog(log)
		if err == nil && !strings.Contains(text, " stderr F end\n") {
			err = fmt.Errorf("the last line is not in %s", dir)
		}
		return err
	})
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^\S+ stdout F line (\d+)$`).FindAllStringSubmatch(text, -1) {
		got = append(got, m[1])
	}
	for i := range min(len(got), lines) {
		if got[i] != fmt.Sprint(i) {
			t.Fatalf("line %s stands where line %d should be", got[i], i)
		}
	}
	if all := strings.Count(text, "\n"); len(got) != lines || all != lines+1 {
		t.Errorf("%d of %d lines are whole, %d in all", len(got), lines, all)
	}
	rotated, err := filepath.Glob(log + ".*")
	if err != nil || len(rotated) < 3 {
		t.Errorf("rotated logs %q, %v; want at least 3", rotated, err)
	}

	for n := range int32(2) {
		e.crash(t, pod, "main")
		pod = e.until(t, "rotation", restarts("main", n+1))
	}
	eventually(t, patience, func() error {
		left, err := filepath.Glob(log + "*")
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("the first container is removed, but not %q", left)
		}
		return err
	})
}

// wholeLog reads a log with all that was rotated from it, oldest first. It is
// an error while a log is being compressed.
func wholeLog(path string) (string, error) {
	files, err := filepath.Glob(path + ".*")
	if err != nil {
		return "", err
	}
	slices.Sort(files)
	var out strings.Builder
	for i, file := range append(files, path) {
		plain, packed := strings.CutSuffix(file, ".gz")
		if strings.HasSuffix(file, ".tmp") || packed && i > 0 && files[i-1] == plain {
			return "", fmt.Errorf("%s is being compressed", plain)
		}
		if err := copyLog(&out, file, packed); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

func copyLog(out io.Writer, file string, packed bool) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if !packed {
		_, err = io.Copy(out, f)
		return err
	}
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, unpacked) //nolint:gosec // the test's own log
	return err
}
