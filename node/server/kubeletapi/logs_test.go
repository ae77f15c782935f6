package kubeletapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/server/kubeletapi"
	"nodekit.dev/runtime"
)

const logsPath = "/containerLogs/default/web/app"

// TestLogOptions: what a query asks for is what is read.
func TestLogOptions(t *testing.T) {
	w := newWorld(t)
	var got kubeletapi.LogRequest
	w.copies = func(_ context.Context, req kubeletapi.LogRequest) error {
		got = req
		req.Opened()
		_, err := fmt.Fprint(req.Out, "text")
		return err
	}
	n := func(n int64) *int64 { return &n }
	current, before := w.seen.Containers[0].LogPath, w.seen.Containers[1].LogPath
	admin := w.admin()
	for query, want := range map[string]kubeletapi.LogRequest{
		"":                               {},
		"tailLines=5":                    {Tail: n(5)},
		"tail=5":                         {Tail: n(5)},
		"tail=all&tailLines=5":           {},
		"limitBytes=9":                   {LimitBytes: n(9)},
		"timestamps=true":                {Timestamps: true},
		"timestamps=0":                   {},
		"timestamps=False":               {},
		"timestamps":                     {Timestamps: true},
		"previous=1":                     {Path: before},
		"stream=Stdout":                  {Stream: "stdout"},
		"stream=Stderr":                  {Stream: "stderr"},
		"stream=All&tailLines=1":         {Tail: n(1)},
		"sinceTime=2026-01-02T03:04:05Z": {Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		"sinceTime=null":                 {},
	} {
		if want.Path == "" {
			want.Path = current
		}
		status, body := w.do(admin, http.MethodGet, logsPath+"?"+query, nil)
		same := got.Path == want.Path && equal(got.Tail, want.Tail) && equal(got.LimitBytes, want.LimitBytes) &&
			got.Timestamps == want.Timestamps && got.Stream == want.Stream && got.Since.Equal(want.Since) && !got.Follow
		if status != http.StatusOK || body != "text" || !same || got.Within != w.cfg.PodLogsDir {
			t.Errorf("%s: %d %q, asked for %+v, want %+v", query, status, body, got, want)
		}
	}
	w.do(admin, http.MethodGet, logsPath+"?sinceSeconds=60", nil)
	if age := time.Since(got.Since); age < time.Minute || age > 2*time.Minute {
		t.Errorf("since %v ago, want a minute", age)
	}
	w.do(admin, http.MethodGet, logsPath+"?sinceSeconds=9223372036854775807", nil)
	if got.Since.After(time.Now().AddDate(-40, 0, 0)) {
		t.Errorf("since %v, want long ago", got.Since)
	}
	bad := answers{}
	for _, query := range []string{"tailLines=x", "sinceTime=yesterday", "limitBytes=", "sinceSeconds=1.5"} {
		bad[logsPath+"?"+query] = `badrequest {"message": "Unable to decode query."}`
	}
	for _, query := range []string{
		"tailLines=-1", "limitBytes=0", "sinceSeconds=0", "sinceSeconds=1&sinceTime=2026-01-02T03:04:05Z", "stream=stdout", "stream=x", "stream=Stdout&tailLines=1",
	} {
		bad[logsPath+"?"+query] = `unprocessableentity {"message": "Invalid request."}`
	}
	bad.check(t, w, http.MethodGet)
}

func equal(a, b *int64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

func TestStreamsOfLogsNeedTheirGate(t *testing.T) {
	w := newWorld(t, func(c *kubeletapi.Config, _ *kubeletapi.Parts) { c.SplitLogStreams = false })
	w.copies = func(context.Context, kubeletapi.LogRequest) error { return nil }
	answers{
		logsPath + "?stream=Stdout": `badrequest unable to return the given log stream: "Stdout". Please enable PodLogsQuerySplitStreams feature gate in kubelet`,
		logsPath + "?stream=All":    "ok",
	}.check(t, w, http.MethodGet)
}

// TestLogsThatAreNot: the words of the stock kubelet, and nothing made up from
// what the request says.
func TestLogsThatAreNot(t *testing.T) {
	w := newWorld(t)
	w.copies = func(_ context.Context, req kubeletapi.LogRequest) error {
		if filepath.Base(req.Path) == "1.log" {
			req.Opened()
			fmt.Fprintln(req.Out, "a line")
			return errors.New("the disk is gone")
		}
		return errors.New("read log: a symlink is in the path")
	}
	answers{
		logsPath:                               "ok a line\nthe disk is gone",
		logsPath + "?previous=1":               "badrequest a symlink is in the path",
		"/containerLogs/default/nobody/app":    `notfound pod "nobody" does not exist`,
		"/containerLogs/default/web/none":      `notfound container "none" not found in pod "web"`,
		"/containerLogs/default/web/..%2f..":   `notfound container "../.." not found in pod "web"`,
		"/containerLogs/default/web/a%0ab":     `notfound container "a\nb" not found in pod "web"`,
		"/containerLogs/..%2f..%2fetc/web/app": `notfound pod "web" does not exist`,
		"/containerLogs/default/web/tty":       `badrequest container "tty" in pod "web" is not available`,
	}.check(t, w, http.MethodGet)
	status := &w.views[0].Status.ContainerStatuses[0]
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	ended := func(id string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: id}}
	}
	for want, row := range map[string]struct{ state, last corev1.ContainerState }{
		`badrequest container "app" in pod "web" is waiting to start: image can't be pulled`:            {state: waiting("ErrImagePull")},
		`badrequest container "app" in pod "web" is waiting to start: trying and failing to pull image`: {state: waiting("ImagePullBackOff")},
		`badrequest container "app" in pod "web" is waiting to start: ContainerCreating`:                {state: waiting("ContainerCreating")},
		`badrequest container "app" in pod "web" is waiting to start - no logs yet`:                     {},
		`badrequest container "app" in pod "web" is terminated`:                                         {state: ended("")},
		`badrequest unable to retrieve container logs for c7: the runtime has removed it`:               {state: waiting("CrashLoopBackOff"), last: ended("containerd://c7")},
		`badrequest read log: a symlink is in the path`:                                                 {state: ended("containerd://c1")},
	} {
		w.mu.Lock()
		status.State, status.LastTerminationState = row.state, row.last
		w.mu.Unlock()
		answers{logsPath: want}.check(t, w, http.MethodGet)
	}
	w.mu.Lock()
	status.State, status.LastTerminationState = waiting("CrashLoopBackOff"), corev1.ContainerState{} // whichever row came last
	w.mu.Unlock()
	answers{logsPath + "?previous=true": `badrequest previous terminated container "app" in pod "web" not found`}.check(t, w, http.MethodGet)
}

// TestFollowEndsWithItsContainer, and at once where that ended before.
func TestFollowEndsWithItsContainer(t *testing.T) {
	w := newWorld(t)
	w.copies = func(ctx context.Context, req kubeletapi.LogRequest) error {
		req.Opened()
		fmt.Fprintln(req.Out, "first")
		select {
		case <-req.Ended:
			fmt.Fprintln(req.Out, "last")
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	resp := w.follow(t, t.Context())
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() || lines.Text() != "first" {
		t.Fatalf("%q, %v", lines.Text(), lines.Err())
	}
	status := func(id string) node.StatusUpdate {
		s := webPod().Status
		s.ContainerStatuses[0].ContainerID = id
		return node.StatusUpdate{UID: "u-1", Phase: lifecycle.Running, Status: s}
	}
	w.ends.PodStatus(status("containerd://c2"))         // runs still
	w.ends.PodStatus(node.StatusUpdate{UID: "u-other"}) // of another pod
	w.ends.PodStatus(status("containerd://c3"))         // another runs in its place
	if !lines.Scan() || lines.Text() != "last" || lines.Scan() {
		t.Errorf("%q, %v", lines.Text(), lines.Err())
	}

	w.mu.Lock()
	w.seen.Containers[0].State = runtime.ContainerExited // the node does not know yet
	w.mu.Unlock()
	_, body := w.do(w.admin(), http.MethodGet, logsPath+"?follow=1", nil)
	if body != "first\nlast\n" {
		t.Errorf("of a container that ended: %q", body)
	}
}

// TestFollowEndsWithItsClient: nobody waits for a client that left.
func TestFollowEndsWithItsClient(t *testing.T) {
	w := newWorld(t)
	left := make(chan error, 1)
	w.copies = func(ctx context.Context, req kubeletapi.LogRequest) error {
		req.Opened()
		<-ctx.Done()
		left <- ctx.Err()
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	resp := w.follow(t, ctx) // the header comes before the first line
	cancel()
	resp.Body.Close()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w.ends.PodStatus(node.StatusUpdate{UID: "u-1", Phase: lifecycle.Finished}) // nobody is told
}

func (w *world) follow(t *testing.T, ctx context.Context) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+w.address+logsPath+"?follow=true", nil)
	must(t, err)
	resp, err := w.admin().Do(req)
	must(t, err)
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%d, %v", resp.StatusCode, resp.Header)
	}
	return resp
}
