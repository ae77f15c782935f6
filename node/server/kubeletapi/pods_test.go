package kubeletapi_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/server"
	"nodekit.dev/node/server/kubeletapi"
	"nodekit.dev/runtime"
)

// answers are paths with what each has to answer.
type answers map[string]string

func (a answers) check(t *testing.T, w *world, method string) {
	t.Helper()
	admin := w.admin()
	for path, want := range a {
		status, body := w.do(admin, method, path, nil)
		wantStatus, wantBody, _ := strings.Cut(want, " ")
		if got := http.StatusText(status); !strings.EqualFold(strings.ReplaceAll(got, " ", ""), wantStatus) || !strings.Contains(body, wantBody) {
			t.Errorf("%s %s: %d %q, want %s", method, path, status, body, want)
		}
	}
}

func TestPods(t *testing.T) {
	w := newWorld(t)
	w.views = append(w.views, node.PodView{UID: "u-9", Name: "orphan", Namespace: "x"})
	_, body := w.do(w.admin(), http.MethodGet, "/pods", nil)
	var list corev1.PodList
	must(t, json.Unmarshal([]byte(body), &list))
	if list.Kind != "PodList" || len(list.Items) != 1 || list.Items[0].Name != "web" || list.Items[0].Status.Phase != corev1.PodRunning {
		t.Errorf("/pods: %s", body)
	}
	_, body = w.do(w.admin(), http.MethodGet, "/runningpods/", nil)
	list = corev1.PodList{}
	must(t, json.Unmarshal([]byte(body), &list))
	if len(list.Items) != 1 || list.Items[0].UID != "u-1" || len(list.Items[0].Spec.Containers) != 1 || list.Items[0].Spec.Containers[0].Image != "web:1" {
		t.Errorf("/runningpods/: %s", body)
	}
	answers{
		"/allocatedPods":                  `ok {"kind":"PodList"`,
		"/allocatedPods/default/web":      `ok "status":{}`,
		"/allocatedPods/default/web/u-1":  `ok {"kind":"Pod"`,
		"/allocatedPods/default/web/u-2":  "notfound pod not found",
		"/allocatedPods/default/..%2fweb": "notfound pod not found",
	}.check(t, w, http.MethodGet)
	answers{"/pods": "methodnotallowed", "/runningpods/": "methodnotallowed", "/containerLogs/default/web/app": "methodnotallowed", "/logs/": "methodnotallowed"}.check(t, w, http.MethodPost)
	w.lookErr = errors.New("the runtime is away")
	answers{"/runningpods/": "internalservererror the runtime is away"}.check(t, w, http.MethodGet)
}

// TestWhichOfTwo: while a pod waits for its predecessor to go, what runs is the
// predecessor's; afterwards it is its own.
func TestWhichOfTwo(t *testing.T) {
	w := newWorld(t)
	second := webPod()
	second.UID, second.Phase = "u-2", lifecycle.Queued
	w.views[0].Leaving = true
	w.views = append(w.views, second)
	ran := ""
	w.command = func(id string, _ []string) (kubeletapi.CommandResult, error) {
		ran = id
		return kubeletapi.CommandResult{}, nil
	}
	answers{"/run/default/web/app?cmd=x": "ok"}.check(t, w, http.MethodPost)
	if ran != "c2" {
		t.Errorf("it ran in %q, want the predecessor's c2", ran)
	}
	w.mu.Lock()
	w.views[1].Phase = lifecycle.Running
	w.seen.UID, w.seen.Containers[0].ID = "u-2", "c9"
	w.mu.Unlock()
	answers{"/run/default/web/app?cmd=x": "ok"}.check(t, w, http.MethodPost)
	if ran != "c9" {
		t.Errorf("it ran in %q, want the successor's c9", ran)
	}
	answers{"/run/default/web/u-1/app?cmd=x": "internalservererror container not found"}.check(t, w, http.MethodPost)
}

func TestRun(t *testing.T) {
	w := newWorld(t)
	var asked []string
	w.command = func(_ string, cmd []string) (kubeletapi.CommandResult, error) {
		asked = cmd
		return kubeletapi.CommandResult{Stdout: []byte("out"), Stderr: []byte("err"), ExitCode: int32(len(cmd) - 2)}, nil
	}
	answers{"/run/default/web/app?cmd=echo+../..": "ok outerr"}.check(t, w, http.MethodPost)
	if strings.Join(asked, "|") != "echo|../.." {
		t.Errorf("it ran %q", asked)
	}
	answers{
		"/run/default/web/app?cmd=a+b+c":   "internalservererror command 'a b c' exited with 1: err",
		"/run/default/web/none?cmd=x":      `internalservererror container not found ("none")`,
		"/run/default/web/tty?cmd=x":       `internalservererror container not found ("tty")`, // it does not run
		"/run/default/nobody/app?cmd=x":    "notfound pod does not exist",
		"/run/default/web/u-2/app?cmd=x":   "notfound pod does not exist",
		"/run/default/web/..%2f..?cmd=x":   "internalservererror container not found",
		"/run/default/web/app%0a?cmd=x":    "internalservererror container not found",
		"/run/default/web%00/app?cmd=x":    "notfound pod does not exist",
		"/run/..%2f..%2fetc/web/app?cmd=x": "notfound pod does not exist",
	}.check(t, w, http.MethodPost)
}

func TestCheckpoint(t *testing.T) {
	w := newWorld(t)
	answers{
		"/checkpoint/default/web/app?timeout=1&timeout=7": `ok {"items":["` + w.cfg.CheckpointDir + `/checkpoint-web_default-app-20`,
	}.check(t, w, http.MethodPost)
	req, ok := w.asked[0].(runtime.CheckpointRequest)
	if !ok || req.ContainerID != "c2" || req.Timeout != 7*time.Second || filepath.Dir(req.Location) != w.cfg.CheckpointDir {
		t.Errorf("asked for %+v", w.asked)
	}
	info, err := os.Stat(w.cfg.CheckpointDir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info, err)
	}
	answers{
		"/checkpoint/default/web/app?timeout=x":                    "notfound cannot parse value of timeout parameter",
		"/checkpoint/default/web/app?timeout=-1":                   "notfound cannot parse value of timeout parameter",
		"/checkpoint/default/web/app?timeout=99999999999999999999": "notfound cannot parse value of timeout parameter",
		"/checkpoint/default/web/none":                             "notfound does not exist",
		"/checkpoint/default/nobody/app":                           "notfound pod does not exist",
		"/checkpoint/default/web/..%2f..%2fapp":                    "notfound does not exist",
	}.check(t, w, http.MethodPost)
	w.lookErr = errors.New("CRIU is missing")
	answers{"/checkpoint/default/web/app": "internalservererror checkpointing of default/web/app failed (CRIU is missing)"}.check(t, w, http.MethodPost)
}

// TestCheckpointNamesNoPath: a pod of a source that checks no names can not
// make an archive elsewhere.
func TestCheckpointNamesNoPath(t *testing.T) {
	w := newWorld(t)
	w.views[0].Name, w.views[0].Pod.ObjectMeta = "../../etc/x", metav1.ObjectMeta{Name: "../../etc/x", Namespace: "default", UID: "u-1"}
	answers{"/checkpoint/default/..%2f..%2fetc%2fx/app": "internalservererror must not be a path"}.check(t, w, http.MethodPost)
	if len(w.asked) != 0 {
		t.Errorf("the runtime was asked: %+v", w.asked)
	}
}

func TestStreamsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/exec/default/web/app?command=x", "/attach/default/web/app"} {
		answers{path: "badrequest you must specify at least 1 of stdin, stdout, stderr"}.check(t, w, http.MethodPost)
	}
	answers{
		"/exec/default/nobody/app?output=1":         "notfound pod does not exist",
		"/exec/default/web/none?output=1":           "internalservererror container not found",
		"/exec/default/web/tty?output=1":            "internalservererror container not found",
		"/attach/default/web/..%2f..%2fx?output=1":  "internalservererror container not found",
		"/exec/default/web/app?output=1&command=..": "internalservererror the runtime is not to be asked",
		"/portForward/default/nobody":               "notfound pod does not exist",
		"/portForward/default/web/u-2":              "notfound pod does not exist",
		"/portForward/default/web":                  "internalservererror the runtime is not to be asked",
	}.check(t, w, http.MethodPost)
	w.seen.Sandboxes[0].Ready = false
	answers{"/portForward/default/web": `internalservererror pod not found ("web_default")`}.check(t, w, http.MethodPost)
}

// TestRuntimeAsWhatClass: who may try again is told so.
func TestRuntimeAsWhatClass(t *testing.T) {
	w := newWorld(t)
	w.lookErr = class{"gone", true, false}
	answers{"/exec/default/web/app?output=1": "notfound gone"}.check(t, w, http.MethodPost)
	w.lookErr = class{"busy", false, true}
	answers{"/exec/default/web/app?output=1": "toomanyrequests busy"}.check(t, w, http.MethodPost)
}

type class struct {
	text          string
	gone, tooMany bool
}

func (c class) Error() string  { return c.text }
func (c class) NotFound() bool { return c.gone }
func (c class) TooMany() bool  { return c.tooMany }

func TestDebugging(t *testing.T) {
	w := newWorld(t)
	answers{
		"/debug/pprof/heap": "ok profile", "/debug/flags/v": "notacceptable unsupported http method",
		"/configz": `ok {"kubeletconfig":"x"}`, "/flagz": "ok v=2\n", "/healthz": "ok ok", "/healthz/ping": "ok ok",
		"/healthz/syncloop": "ok ok", "/healthz/log": "ok ok", "/healthz/disk": "ok ok", "/healthz?verbose": "ok [+]ping ok\n[+]disk ok\n[+]log ok\n[+]syncloop ok\nhealthz check passed", "/logs/": "ok", "/metrics": "ok series",
		"/statusz": "ok Paths: /allocatedPods /attach /checkpoint /configz /containerLogs /debug /exec /flagz /healthz /logs /pods /portForward /run /runningpods",
	}.check(t, w, http.MethodGet)
	admin := w.admin()
	for level, want := range map[string]int{"4": http.StatusOK, "x": http.StatusBadRequest} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://"+w.address+"/debug/flags/v", strings.NewReader(level))
		must(t, err)
		resp, err := admin.Do(req)
		must(t, err)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("PUT %q: %d", level, resp.StatusCode)
		}
	}

	off := newWorld(t, func(c *kubeletapi.Config, _ *kubeletapi.Parts) { c.Debugging = false })
	disabled := "methodnotallowed Debug endpoints are disabled."
	answers{
		"/exec/default/web/app": disabled, "/attach/x": disabled, "/portForward/x/y": disabled, "/run/x": disabled, "/containerLogs/x": disabled,
		"/runningpods/": disabled, "/debug/pprof/heap": disabled, "/logs/": disabled,
		"/configz": "notfound", "/statusz": "notfound", "/checkpoint/default/web/app": "notfound", "/allocatedPods": "notfound",
		"/pods": "ok PodList", "/healthz": "ok",
	}.check(t, off, http.MethodGet)

	some := newWorld(t, func(c *kubeletapi.Config, _ *kubeletapi.Parts) {
		c.Profiling, c.DebugFlags, c.SystemLogHandler, c.Checkpoints, c.AllocatedPods = false, false, false, false, false
	})
	answers{
		"/debug/pprof/heap": "methodnotallowed profiling endpoint is disabled.", "/debug/flags/v": "methodnotallowed flags endpoint is disabled.",
		"/logs/": "methodnotallowed logs endpoint is disabled.", "/checkpoint/default/web/app": "notfound", "/allocatedPods": "notfound",
	}.check(t, some, http.MethodGet)
}

func TestRoutesRefuses(t *testing.T) {
	parts := kubeletapi.Parts{Pods: &world{}, Runtime: &world{}}
	for want, change := range map[string]func(*kubeletapi.Config, *kubeletapi.Parts){
		"Pods and Runtime must be set":                 func(_ *kubeletapi.Config, p *kubeletapi.Parts) { p.Runtime = nil },
		`PodLogsDir "x": must be an absolute path`:     func(c *kubeletapi.Config, _ *kubeletapi.Parts) { c.PodLogsDir = "x" },
		"StreamIdleTimeout -1ns: must not be negative": func(c *kubeletapi.Config, _ *kubeletapi.Parts) { c.StreamIdleTimeout = -1 },
		"health check group: a member has no name": func(_ *kubeletapi.Config, p *kubeletapi.Parts) {
			p.Checks = []node.Ordered[server.Check]{{}}
		},
	} {
		cfg, p := kubeletapi.Default(), parts
		change(&cfg, &p)
		if _, err := kubeletapi.Routes(cfg, p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
