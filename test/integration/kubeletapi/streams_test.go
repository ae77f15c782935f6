package kubeletapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"nodekit.dev/test/integration/testbed"
)

// executors are both ways in which kubectl runs commands.
func (r *rig) executors(t *testing.T, path string, query url.Values) map[string]remotecommand.Executor {
	t.Helper()
	target := r.url(path, query)
	overSPDY, err := remotecommand.NewSPDYExecutor(r.client, http.MethodPost, target)
	must(t, err)
	overWebSocket, err := remotecommand.NewWebSocketExecutor(r.client, http.MethodGet, target.String())
	must(t, err)
	return map[string]remotecommand.Executor{"SPDY": overSPDY, "WebSocket": overWebSocket}
}

func execQuery(o remotecommand.StreamOptions, command ...string) url.Values {
	q := url.Values{"command": command}
	for name, wanted := range map[string]bool{"input": o.Stdin != nil, "output": o.Stdout != nil, "error": o.Stderr != nil, "tty": o.Tty} {
		if wanted {
			q.Set(name, "1")
		}
	}
	return q
}

func TestStreams(t *testing.T) {
	for _, version := range []string{testbed.V2, testbed.V16} {
		t.Run("containerd "+version, func(t *testing.T) {
			t.Parallel()
			tty := shell("tty", "while read line; do echo \"got $line $(stty size)\"; done")
			tty.Stdin, tty.TTY = true, true
			echo := shell("echo", "while read line; do echo \"out $line\"; echo \"err $line\" >&2; done")
			echo.Stdin = true
			r := newRig(t, version, shell("app", "trap 'exit 0' TERM; sleep 1000 & wait"), tty, echo,
				corev1.Container{Name: "web", Image: testbed.WebImage, Args: []string{"-root=/etc"}})
			t.Run("exec", r.exec)
			t.Run("exec fails", r.execFails)
			t.Run("much", r.much)
			t.Run("terminal", r.terminal)
			t.Run("attach", r.attach)
			t.Run("port-forward", r.forward)
			t.Run("run", r.run)
			for _, kind := range []string{"exec", "attach", "portforward"} {
				if r.translated(kind) == 0 {
					t.Errorf("no %s was translated", kind)
				}
			}
		})
	}
}

// exec: both outputs, stdin to its end, and the exit code.
func (r *rig) exec(t *testing.T) {
	var out, errs bytes.Buffer
	o := remotecommand.StreamOptions{Stdout: &out, Stderr: &errs}
	for name, row := range map[string]struct {
		stdin, script, out, err string
		code                    int
	}{
		"both outputs": {"", "echo hello; sleep 1; echo oops >&2", "hello\n", "oops\n", 0},
		"exit code":    {"", "echo first; exit 7", "first\n", "", 7},
		"signal":       {"", "kill -9 $$", "", "", 137},
		"stdin":        {"one\ntwo\n", "cat; echo end", "one\ntwo\nend\n", "", 0}, // ends only if the end of stdin comes through
		"nothing":      {"", "true", "", "", 0},
		"odd words":    {"", `printf '%s|' "$0" '../..' "$(printf 'a\nb')"`, "sh|../..|a\nb|", "", 0},
	} {
		options := o
		if row.stdin != "" {
			options.Stdin = strings.NewReader(row.stdin)
		}
		for protocol, executor := range r.executors(t, "/exec/default/web/app", execQuery(options, "sh", "-c", row.script)) {
			if row.stdin != "" {
				options.Stdin = strings.NewReader(row.stdin)
			}
			out.Reset()
			errs.Reset()
			err := executor.StreamWithContext(t.Context(), options)
			var exit utilexec.ExitError
			code := 0
			if errors.As(err, &exit) {
				code = exit.ExitStatus()
			} else if err != nil {
				t.Errorf("%s over %s: %v", name, protocol, err)
			}
			if out.String() != row.out || errs.String() != row.err || code != row.code {
				t.Errorf("%s over %s: %q, %q, %d, want %q, %q, %d", name, protocol, out.String(), errs.String(), code, row.out, row.err, row.code)
			}
		}
	}
}

func (r *rig) execFails(t *testing.T) {
	o := remotecommand.StreamOptions{Stdout: io.Discard}
	for path, want := range map[string]string{
		"/exec/default/web/none":         `container not found ("none")`,
		"/exec/default/nobody/app":       "pod does not exist",
		"/exec/default/web/uid-2/app":    "pod does not exist",
		"/exec/default/..%2fweb/app":     "pod does not exist",
		"/exec/default/web/app%00":       "container not found",
		"/exec/default/web/uid-1/app\n":  "container not found",
		"/exec/kube-system/web/app":      "pod does not exist",
		"/attach/default/web/..%2f..%2f": "container not found",
	} {
		target := r.url("", execQuery(o, "true"))
		var err error
		target.Path, err = url.PathUnescape(path)
		must(t, err)
		target.RawPath = path
		for protocol, make := range map[string]func() (remotecommand.Executor, error){
			"SPDY": func() (remotecommand.Executor, error) { return remotecommand.NewSPDYExecutor(r.client, "POST", target) },
			"WebSocket": func() (remotecommand.Executor, error) {
				return remotecommand.NewWebSocketExecutor(r.client, "GET", target.String())
			},
		} {
			executor, err := make()
			must(t, err)
			if err := executor.StreamWithContext(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q over %s: %v, want %q", path, protocol, err, want)
			}
		}
	}
	// A command that is not there is the runtime's to tell.
	for protocol, executor := range r.executors(t, "/exec/default/web/app", execQuery(o, "/no/such/command")) {
		if err := executor.StreamWithContext(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no such file") {
			t.Errorf("no command over %s: %v", protocol, err)
		}
	}
}

// much moves more than fits any buffer, both ways, as kubectl cp does.
func (r *rig) much(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<19) // 8 MiB
	for protocol := range map[string]bool{"SPDY": true, "WebSocket": true} {
		var out bytes.Buffer
		o := remotecommand.StreamOptions{Stdin: bytes.NewReader(want), Stdout: &out}
		executor := r.executors(t, "/exec/default/web/app", execQuery(o, "cat"))[protocol]
		begun := time.Now()
		if err := executor.StreamWithContext(t.Context(), o); err != nil || !bytes.Equal(out.Bytes(), want) {
			t.Errorf("%s: %v, %d bytes of %d", protocol, err, out.Len(), len(want))
		}
		t.Logf("%s: 8 MiB there and back in %v", protocol, time.Since(begun))
	}
}

// sizes tells the size of a terminal once.
type sizes chan remotecommand.TerminalSize

func (s sizes) Next() *remotecommand.TerminalSize {
	size, ok := <-s
	if !ok {
		return nil
	}
	return &size
}

// terminal: the size comes through before the command looks at it.
func (r *rig) terminal(t *testing.T) {
	for protocol := range map[string]bool{"SPDY": true, "WebSocket": true} {
		queue := make(sizes, 1)
		queue <- remotecommand.TerminalSize{Width: 133, Height: 44}
		var out bytes.Buffer
		o := remotecommand.StreamOptions{Stdin: emptyUntil(t.Context()), Stdout: &out, Tty: true, TerminalSizeQueue: queue}
		script := `i=0; until [ "$(stty size)" = "44 133" ] || [ $i = 200 ]; do i=$((i+1)); sleep 0.05; done; stty size; tty`
		executor := r.executors(t, "/exec/default/web/app", execQuery(o, "sh", "-c", script))[protocol]
		err := executor.StreamWithContext(t.Context(), o)
		close(queue)
		if err != nil || !strings.Contains(out.String(), "44 133") || !strings.Contains(out.String(), "/dev/pts/") {
			t.Errorf("%s: %v, %q", protocol, err, out.String())
		}
	}
}

// emptyUntil is a stdin on which nobody types.
func emptyUntil(ctx context.Context) io.Reader {
	in, out := io.Pipe()
	context.AfterFunc(ctx, func() { out.Close() })
	return in
}

// attach: to a container without and with a terminal; it ends with the client
// and the container runs on.
func (r *rig) attach(t *testing.T) {
	for protocol := range map[string]bool{"SPDY": true, "WebSocket": true} {
		for _, row := range []struct {
			container string
			wants     []string
		}{
			{"echo", []string{"out " + protocol + "\n", "err " + protocol + "\n"}},
			{"tty", []string{"got " + protocol}},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			in, typed := io.Pipe()
			seen := &watched{wants: row.wants, done: cancel}
			o := remotecommand.StreamOptions{Stdin: in, Stdout: seen, Stderr: seen}
			if row.container == "tty" {
				o = remotecommand.StreamOptions{Stdin: in, Stdout: seen, Tty: true}
			}
			executor := r.executors(t, "/attach/default/web/"+row.container, execQuery(o))[protocol]
			ended := make(chan error, 1)
			go func() { ended <- executor.StreamWithContext(ctx, o) }()
			_, err := io.WriteString(typed, protocol+"\n")
			must(t, err)
			<-ended
			typed.Close()
			cancel()
			if missing := seen.missing(); missing != "" {
				t.Errorf("%s to %s: %q is missing", protocol, row.container, missing)
			}
		}
	}
}

// forward: the web server answers, over both protocols, several times.
func (r *rig) forward(t *testing.T) {
	target := r.url("/portForward/default/web", nil)
	transport, upgrader, err := spdy.RoundTripperFor(r.client)
	must(t, err)
	overSPDY := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, target)
	overWebSocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(target, r.client)
	must(t, err)
	for protocol, dialer := range map[string]httpstream.Dialer{"SPDY": overSPDY, "WebSocket": overWebSocket} {
		stop, ready := make(chan struct{}), make(chan struct{})
		var said bytes.Buffer
		forwarder, err := portforward.NewForStreaming(dialer, ports(0, 8080), stop, ready, io.Discard, &said)
		must(t, err)
		done := make(chan error, 1)
		go func() { done <- forwarder.ForwardPorts() }()
		select {
		case <-ready:
		case err := <-done:
			t.Fatalf("%s: %v", protocol, err)
		}
		local, err := forwarder.GetPorts()
		must(t, err)
		for range 5 {
			page, err := testbed.Fetch(t.Context(), fmt.Sprintf("http://127.0.0.1:%d/passwd", local[0].Local))
			if err != nil || !strings.Contains(page, "nobody") {
				t.Errorf("%s: %q, %v; said %q", protocol, page, err, said.String())
			}
		}
		close(stop)
		if err := <-done; err != nil {
			t.Errorf("%s: %v", protocol, err)
		}
	}
}

func (r *rig) run(t *testing.T) {
	for cmd, want := range map[string]string{"echo a b": "200 a b\n", "false": "500 command 'false' exited with 1: \n"} {
		client, err := newHTTPClient(r.client)
		must(t, err)
		resp, err := client.Post(r.url("/run/default/web/app", url.Values{"cmd": {cmd}}).String(), "", nil)
		must(t, err)
		text, err := readAll(resp)
		must(t, err)
		resp.Body.Close()
		client.CloseIdleConnections()
		if got := fmt.Sprintf("%d %s", resp.StatusCode, text); got != want {
			t.Errorf("run %q: %q, want %q", cmd, got, want)
		}
	}
}
