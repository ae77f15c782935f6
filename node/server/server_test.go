package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
	"nodekit.dev/node/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// twoPods is an agent with a pod that runs and an orphan.
type twoPods struct{}

func (twoPods) Pods() []node.PodView {
	started := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return []node.PodView{
		{UID: "u-2", Namespace: "default", Name: "web", Source: "file", Phase: lifecycle.Running,
			Pod: &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u-2"},
				Spec:       corev1.PodSpec{NodeName: "here"},
				Status:     corev1.PodStatus{Phase: corev1.PodPending}, // stale: the view's status counts
			},
			Status: corev1.PodStatus{
				Phase: corev1.PodRunning, StartTime: &started, PodIPs: []corev1.PodIP{{IP: "10.0.0.2"}, {IP: "fd00::2"}},
				InitContainerStatuses: []corev1.ContainerStatus{{Name: "init", RestartCount: 1}},
				ContainerStatuses: []corev1.ContainerStatus{
					{Name: "app", Ready: true, RestartCount: 2},
					{Name: "side", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}},
				},
			}},
		{UID: "u-1", Namespace: "default", Name: "gone", Phase: lifecycle.Stopping, Leaving: true, Status: corev1.PodStatus{Phase: corev1.PodFailed}},
	}
}

func (twoPods) Trace(uid string) (podactor.Trace, bool, error) {
	switch uid {
	case "u-2":
		return podactor.Trace{Version: podactor.TraceVersion, UID: uid}, true, nil
	case "broken":
		return podactor.Trace{}, true, fmt.Errorf("trace of pod %s: torn", uid)
	}
	return podactor.Trace{}, false, nil
}

// running is a server that runs until the test ends, and its socket.
func running(t *testing.T, cfg server.Config, routes ...server.Route) *http.Client {
	t.Helper()
	srv, err := server.New(cfg, twoPods{}, nil, routes...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	client := overSocket(cfg.Socket)
	t.Cleanup(func() {
		client.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if _, err := os.Stat(cfg.Socket); cfg.Socket != "" && !os.IsNotExist(err) {
			t.Errorf("the socket is still there: %v", err)
		}
	})
	return client
}

// overSocket dials with patience, as the server listens a moment after Run.
func overSocket(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dial(ctx, "unix", path)
	}}}
}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var d net.Dialer
		c, err := d.DialContext(ctx, network, address)
		if err == nil {
			return c, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

func get(t *testing.T, client *http.Client, path string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://agent"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

func socketIn(t *testing.T) string { return filepath.Join(t.TempDir(), "s.sock") }

func TestPods(t *testing.T) {
	client := running(t, server.Config{Socket: socketIn(t)})
	var list corev1.PodList
	code, body := get(t, client, "/pods")
	if err := json.Unmarshal([]byte(body), &list); err != nil || code != http.StatusOK || list.Kind != "PodList" || len(list.Items) != 2 {
		t.Fatalf("GET /pods: %d %v\n%s", code, err, body)
	}
	orphan, web := list.Items[0], list.Items[1]
	if orphan.Name != "gone" || orphan.UID != "u-1" || orphan.Status.Phase != corev1.PodFailed {
		t.Errorf("the orphan: %+v", orphan)
	}
	if web.Spec.NodeName != "here" || web.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod with its status of now: %+v", web)
	}
}

func TestDebugPods(t *testing.T) {
	client := running(t, server.Config{Socket: socketIn(t)})
	_, body := get(t, client, "/debug/pods")
	want := `[{"uid":"u-1","namespace":"default","name":"gone","machine":"Stopping","leaving":true,"phase":"Failed","ready":"0/0","restarts":0},` +
		`{"uid":"u-2","namespace":"default","name":"web","source":"file","machine":"Running","phase":"Running","ready":"1/2","restarts":3,` +
		`"startTime":"2026-01-02T03:04:05Z","ips":["10.0.0.2","fd00::2"],"waiting":["side: CrashLoopBackOff"]}]`
	if body != want {
		t.Errorf("got\n%s\nwant\n%s", body, want)
	}
}

func TestAnswers(t *testing.T) {
	hello := server.Route{Pattern: "GET /hello", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hi") })}
	client := running(t, server.Config{Socket: socketIn(t)}, hello)
	for _, row := range []struct {
		path string
		code int
		body string
	}{
		{"/healthz", http.StatusOK, "ok"},
		{"/hello", http.StatusOK, "hi"},
		{"/debug/pods/u-2", http.StatusOK, `{"version":1,"uid":"u-2"`},
		{"/debug/pods/nobody", http.StatusNotFound, "no pod has the UID nobody; GET /debug/pods lists them"},
		{"/debug/pods/broken", http.StatusInternalServerError, "trace of pod broken: torn"},
		{"/nowhere", http.StatusNotFound, "404"},
	} {
		if code, body := get(t, client, row.path); code != row.code || !strings.Contains(body, row.body) {
			t.Errorf("GET %s: %d %q, want %d %q", row.path, code, body, row.code, row.body)
		}
	}
}

// TCP says that the agent lives and nothing else.
func TestHealthzOverTCP(t *testing.T) {
	address := freeAddress(t)
	running(t, server.Config{HealthzAddress: address})
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dial(ctx, "tcp", address)
	}}}
	defer client.CloseIdleConnections()
	if code, body := get(t, client, "/healthz"); code != http.StatusOK || body != "ok" {
		t.Errorf("GET /healthz: %d %q", code, body)
	}
	if code, _ := get(t, client, "/pods"); code != http.StatusNotFound {
		t.Errorf("GET /pods over TCP: %d, want 404", code)
	}
}

// freeAddress is a port of loopback that was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l := listen(t, "tcp", "127.0.0.1:0")
	l.Close()
	return l.Addr().String()
}

func listen(t *testing.T, network, address string) net.Listener {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestSocketIsForRootOnly(t *testing.T) {
	cfg := server.Config{Socket: filepath.Join(t.TempDir(), "new", "s.sock")}
	client := running(t, cfg)
	get(t, client, "/healthz")
	info, err := os.Stat(cfg.Socket)
	if err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("mode %v, %v; want a socket of mode 0600", info.Mode(), err)
	}
}

// An agent that was killed leaves its socket behind.
func TestStaleSocketIsTakenOver(t *testing.T) {
	cfg := server.Config{Socket: socketIn(t)}
	dead := listen(t, "unix", cfg.Socket)
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()
	client := running(t, cfg)
	if code, _ := get(t, client, "/healthz"); code != http.StatusOK {
		t.Errorf("status %d", code)
	}
}

func TestWhatIsNoSocketIsNotRemoved(t *testing.T) {
	path := socketIn(t)
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := runOnce(t, server.Config{Socket: path})
	if err == nil || !strings.Contains(err.Error(), path+" is in the way") {
		t.Errorf("got %v", err)
	}
	if data, err := os.ReadFile(path); string(data) != "precious" {
		t.Errorf("the file: %q, %v", data, err)
	}
}

// A taken port ends Run with its name, and what listened already stops.
func TestTakenPort(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0")
	defer l.Close()
	address := l.Addr().String()
	err := runOnce(t, server.Config{HealthzAddress: address, Socket: socketIn(t)})
	if err == nil || !strings.Contains(err.Error(), address) || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v, want an error that names %s", err, address)
	}
}

func runOnce(t *testing.T, cfg server.Config) error {
	t.Helper()
	srv, err := server.New(cfg, twoPods{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return srv.Run(t.Context())
}

// A call that waits is told, and does not keep the server from stopping.
func TestStopEndsCallsUnderWay(t *testing.T) {
	entered := make(chan struct{})
	wait := server.Route{Pattern: "GET /wait", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})}
	cfg := server.Config{Socket: socketIn(t)}
	srv, err := server.New(cfg, twoPods{}, nil, wait)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	client := overSocket(cfg.Socket)
	defer client.CloseIdleConnections()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		get(t, client, "/wait")
	}()
	<-entered
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	<-answered
}

func TestNewRefuses(t *testing.T) {
	handler := http.NotFoundHandler()
	for want, row := range map[string]struct {
		cfg    server.Config
		routes []server.Route
	}{
		`HealthzAddress "nowhere"`:                    {cfg: server.Config{HealthzAddress: "nowhere"}},
		`Socket "relative": must be an absolute path`: {cfg: server.Config{Socket: "relative"}},
		`route "GET /debug/pods"`:                     {routes: []server.Route{{Pattern: "GET /debug/pods", Handler: handler}}},
		`route "GET /x": another route`:               {routes: []server.Route{{Pattern: "GET /x", Handler: handler}, {Pattern: "GET /x", Handler: handler}}},
		`route "/x": has no handler`:                  {routes: []server.Route{{Pattern: "/x"}}},
		`route "example.org/x"`:                       {routes: []server.Route{{Pattern: "example.org/x", Handler: handler}}},
		`route "/{a}/x"`:                              {routes: []server.Route{{Pattern: "/b/{c}", Handler: handler}, {Pattern: "/{a}/x", Handler: handler}}},
		`route "GET"`:                                 {routes: []server.Route{{Pattern: "GET", Handler: handler}}},
	} {
		if _, err := server.New(row.cfg, twoPods{}, nil, row.routes...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := server.New(server.Config{}, nil, nil); err == nil {
		t.Error("no agent, no error")
	}
}

// Only the newest events are kept, and the route shows them oldest first.
func TestEvents(t *testing.T) {
	events := server.NewEvents(2)
	client := running(t, server.Config{Socket: socketIn(t)}, events.Route())
	if _, body := get(t, client, "/debug/events"); body != "[]" {
		t.Errorf("no events: %s", body)
	}
	for _, reason := range []string{"Pulling", "Pulled", "Started"} {
		events.PodEvent(node.PodEvent{UID: "u", Namespace: "n", Name: "p", Event: lifecycle.Event{Type: lifecycle.EventNormal, Reason: reason, Container: "c"}})
	}
	events.Add(server.Event{Type: lifecycle.EventWarning, Reason: "InvalidManifest", Location: "/m/bad.yaml"})
	_, body := get(t, client, "/debug/events")
	var got []server.Event
	if err := json.Unmarshal([]byte(body), &got); err != nil || len(got) != 2 {
		t.Fatalf("%v: %s", err, body)
	}
	if got[0].Reason != "Started" || got[0].UID != "u" || got[0].Container != "c" || got[0].Time.IsZero() || got[1].Location != "/m/bad.yaml" {
		t.Errorf("got %+v", got)
	}
}
