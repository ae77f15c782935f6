package kubeletapi

import (
	"bufio"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nodekit.dev/test/integration/testbed"
)

// TestLogs reads what a container really wrote, and follows one to its end.
func TestLogs(t *testing.T) {
	for _, version := range []string{testbed.V2, testbed.V16} {
		t.Run("containerd "+version, func(t *testing.T) {
			t.Parallel()
			readLogs(t, version)
		})
	}
}

func readLogs(t *testing.T, version string) {
	r := newRig(t, version, shell("app", "for i in 1 2 3; do echo line $i; done; sleep 1; echo oops >&2; sleep 1000"),
		shell("short", "i=0; while [ $i -lt 20 ]; do i=$((i+1)); echo tick $i; sleep 0.1; done"))
	const logs = "/containerLogs/default/web/app"
	must(t, testbed.Eventually(t.Context(), 20*time.Millisecond, func(ctx testContext) error {
		_, text, err := r.get(logs, nil)
		return lacking(text, "oops", err)
	}))
	for query, want := range map[string]string{
		"":                               "line 1\nline 2\nline 3\noops\n",
		"tailLines=2":                    "line 3\noops\n",
		"tail=1":                         "oops\n",
		"limitBytes=8":                   "line 1\nl",
		"sinceSeconds=3600":              "line 1\nline 2\nline 3\noops\n",
		"sinceTime=2099-01-01T00:00:00Z": "",
	} {
		values, err := url.ParseQuery(query)
		must(t, err)
		status, text, err := r.get(logs, values)
		if err != nil || status != http.StatusOK || text != want {
			t.Errorf("%q: %d %q %v, want %q", query, status, text, err, want)
		}
	}
	if _, text, _ := r.get(logs, url.Values{"timestamps": {"true"}, "tailLines": {"1"}}); !strings.HasSuffix(text, "Z oops\n") {
		t.Errorf("with a timestamp: %q", text)
	}
	r.follow(t)
	r.escape(t)
}

// follow reads line by line while they are written, to the container's end.
func (r *rig) follow(t *testing.T) {
	client, err := newHTTPClient(r.client)
	must(t, err)
	defer client.CloseIdleConnections()
	resp, err := client.Get(r.url("/containerLogs/default/web/short", url.Values{"follow": {"1"}}).String())
	must(t, err)
	defer resp.Body.Close()
	go func() { // what the node does when the runtime tells of an end
		_ = testbed.Eventually(t.Context(), 20*time.Millisecond, func(ctx testContext) error {
			pod, err := r.cri.LookPod(ctx, "uid-1")
			if err == nil && len(pod.Containers) > 0 {
				for _, c := range pod.Containers {
					if c.Name == "short" && c.State == "exited" {
						r.look(t)
						return nil
					}
				}
			}
			return errNotYet
		})
	}()
	lines := 0
	scanner := bufio.NewScanner(resp.Body)
	for scanner.Scan() {
		lines++
	}
	if lines != 20 || scanner.Err() != nil {
		t.Errorf("followed %d lines, %v", lines, scanner.Err())
	}
}

// escape: a symlink in the place of a log is not followed.
func (r *rig) escape(t *testing.T) {
	path := filepath.Join(r.sandbox.LogDirectory, "app", "0.log")
	must(t, os.Rename(path, path+".kept"))
	secret := filepath.Join(r.bed.Dir, "secret")
	must(t, os.WriteFile(secret, []byte("2026-01-02T03:04:05Z stdout F root:x\n"), 0o600))
	must(t, os.Symlink(secret, path))
	status, text, err := r.get("/containerLogs/default/web/app", nil)
	if err != nil || status != http.StatusBadRequest || !strings.Contains(text, "a symlink is in the path") {
		t.Errorf("%d %q %v", status, text, err)
	}
}
