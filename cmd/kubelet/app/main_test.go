package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nodekit.dev/cmd/kubelet/config"
	"nodekit.dev/node"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/runtimetest"
)

// childMode makes the test binary a kubelet, for what takes a process: signals,
// exit codes and panics.
const childMode = "NODEKIT_TEST_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		os.Exit(Main(os.Args[1:], childOptions(mode)...))
	}
	os.Exit(m.Run())
}

func childOptions(mode string) []Option {
	switch mode {
	case "panic in build":
		return []Option{Agent(func(*config.Loaded) ([]nodefx.Option, error) { panic("boom in build") })}
	case "panic in a part":
		return []Option{Agent(func(*config.Loaded) ([]nodefx.Option, error) {
			return []nodefx.Option{nodefx.Wrap[node.Watcher]("boom", nil, func(w node.Watcher) node.Watcher { return panics{w} })}, nil
		})}
	}
	return nil
}

// panics is a watcher with a bug.
type panics struct{ node.Watcher }

func (panics) Status() runtime.Status { panic("boom in a part") }

// bed is a runtime in memory and the flags of an agent on it.
type bed struct {
	world    *runtimetest.World
	dir      string
	endpoint string
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{world: runtimetest.NewWorld(t, runtimetest.Config{}), dir: t.TempDir()}
	b.endpoint = b.world.Serve(t, b.dir).Endpoint()
	if err := os.Mkdir(filepath.Join(b.dir, "manifests"), 0o755); err != nil {
		t.Fatal(err)
	}
	return b
}

// config writes the configuration file: nothing of the host is touched, but by
// what more says instead.
func (b *bed) config(t *testing.T, more string) string {
	t.Helper()
	text := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	for _, field := range []string{
		"oomScoreAdj: 0", "failCgroupV1: false", "cgroupsPerQOS: false", "enforceNodeAllocatable: []", "makeIPTablesUtilChains: false",
		"maxOpenFiles: 1", "healthzPort: 0", "podLogsDir: " + filepath.Join(b.dir, "log", "pods"),
	} {
		name, _, _ := strings.Cut(field, " ")
		if !strings.Contains("\n"+more, "\n"+name) {
			text += field + "\n"
		}
	}
	path := filepath.Join(b.dir, "kubelet.yaml")
	if err := os.WriteFile(path, []byte(text+more), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (b *bed) flags(t *testing.T, more string) []string {
	return []string{
		"--config=" + b.config(t, more), "--root-dir=" + filepath.Join(b.dir, "root"),
		"--container-runtime-endpoint=" + b.endpoint, "--pod-manifest-path=" + filepath.Join(b.dir, "manifests"),
		"--hostname-override=node1", "--node-ip=192.0.2.1",
	}
}

func (b *bed) manifest(t *testing.T) {
	t.Helper()
	const text = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default", "uid": "uid-web"},
		"spec": {"containers": [{"name": "app", "image": "web:1"}]}}`
	if err := os.WriteFile(filepath.Join(b.dir, "manifests", "web.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// get asks the agent's socket for JSON, with patience until it listens.
func (b *bed) get(t *testing.T, path string, into any) {
	t.Helper()
	b.read(t, path, func(r io.Reader) bool { return json.NewDecoder(r).Decode(into) == nil })
}

// text is what the agent's socket shows, once it has all of want.
func (b *bed) text(t *testing.T, path string, want ...string) (text string) {
	t.Helper()
	b.read(t, path, func(r io.Reader) bool {
		all, err := io.ReadAll(r)
		text = string(all)
		return err == nil && !slices.ContainsFunc(want, func(one string) bool { return !strings.Contains(text, one) })
	})
	return text
}

// read asks until the answer is content with take.
func (b *bed) read(t *testing.T, path string, take func(io.Reader) bool) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", filepath.Join(b.dir, "root", SocketName))
		},
	}}
	await(t, "an answer to "+path, func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://agent"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK && take(resp.Body)
	})
}

// await polls until done is content.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("no %s within 20 s", what)
		}
	}
}

func (b *bed) awaitRunning(t *testing.T) {
	t.Helper()
	await(t, "running container", func() bool {
		pod, err := b.world.LookPod(t.Context(), "uid-web")
		return err == nil && len(pod.Containers) == 1 && pod.Containers[0].State == "running"
	})
}

// once runs a kubelet that ends by itself.
func once(t *testing.T, args []string, opts ...Option) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Run(t.Context(), args, &out, &errs, opts...)
	return code, out.String(), errs.String()
}

// log takes the log of a kubelet that runs. Safe for concurrent use.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start runs a kubelet in this process until stop is called, which returns its
// exit code.
func start(t *testing.T, args []string, opts ...Option) (logs *log, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	logs = &log{}
	done := make(chan int, 1)
	go func() { done <- Run(ctx, args, logs, logs, opts...) }()
	stop = sync.OnceValue(func() int {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("the kubelet's log:\n%s", logs)
		}
	})
	return logs, stop
}

// child is this test binary as a kubelet.
func child(t *testing.T, mode string, args []string) (*exec.Cmd, *log) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	logs := &log{}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), childMode+"="+mode)
	cmd.Stdout, cmd.Stderr = logs, logs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, logs
}

func lines(text string) []string { return strings.Split(strings.TrimRight(text, "\n"), "\n") }

// header is what klog puts before a line of the failure that ended it all.
const header = `^E\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ failure\.go:\d+\] "command failed" err="`

func wantLine(t *testing.T, line, pattern string) {
	t.Helper()
	if ok, err := regexp.MatchString(pattern, line); err != nil || !ok {
		t.Errorf("line %q does not match %s (%v)", line, pattern, err)
	}
}

func quoted(s string) string { return regexp.QuoteMeta(strings.ReplaceAll(s, `"`, `\"`)) }

// freePort is a port of loopback that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
