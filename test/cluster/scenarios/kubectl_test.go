package scenarios

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/test/cluster/world"
	"nodekit.dev/test/integration/testbed"
)

// TestKubectl does with kubectl what needs the node's HTTPS API, over WebSocket
// and, where there are two ways, over SPDY as well.
func TestKubectl(t *testing.T) {
	require(t)
	e := newEnv(t, world.Options{}, world.AgentOptions{Config: allRoutes()})
	runScenarios(t, e, []scenario{
		{"Logs", kubectlLogs},
		{"LogsPrevious", kubectlLogsPrevious},
		{"LogsFollow", kubectlLogsFollow},
		{"Exec", kubectlExec},
		{"ExecTTY", kubectlExecTTY},
		{"Attach", kubectlAttach},
		{"Copy", kubectlCopy},
		{"PortForward", kubectlPortForward},
		{"Debug", kubectlDebug},
		{"RunInteractive", kubectlRun},
		{"NodeProxyPods", proxyPods},
		{"NodeProxyRun", proxyRun},
		{"NodeProxyCheckpoint", proxyCheckpoint},
		{"NodeProxyLogs", proxyLogs},
		{"NodeProxyMetrics", proxyMetrics},
		{"NodeProxyPages", proxyPages},
	})
}

// protocol is a way that kubectl streams.
type protocol struct {
	name string
	env  []string
}

func protocols() []protocol {
	return []protocol{
		{"websocket", nil},
		{"spdy", []string{"KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false", "KUBECTL_PORT_FORWARD_WEBSOCKETS=false"}},
	}
}

func (p protocol) command(e *env, ctx context.Context, args ...string) *exec.Cmd {
	cmd := e.Plane.KubectlCommand(ctx, args...)
	cmd.Env = append(cmd.Env, p.env...)
	return cmd
}

const talker = `
apiVersion: v1
kind: Pod
metadata: {name: talker}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: BUSYBOX
    command: [sh, -c, "for i in 1 2 3 4 5; do echo line $i; done; sleep 1; echo to stderr >&2; exec sleep 10000"]
  - {name: second, image: WEB, args: ["-root=/etc"]}
`

func kubectlLogs(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, talker)
	e.untilPod(t, patience, ns, "talker", ready)
	logs := func(args ...string) string {
		return e.kubectl(t, append([]string{"-n", ns, "logs", "talker", "-c", "main"}, args...)...)
	}
	whole := "line 1\nline 2\nline 3\nline 4\nline 5\nto stderr\n"
	e.eventually(t, patience, func() error {
		if got := logs(); got != whole {
			return fmt.Errorf("the log is %q, want %q", got, whole)
		}
		return nil
	})
	if got := logs("--tail=2"); got != "line 5\nto stderr\n" {
		t.Errorf("--tail=2: %q", got)
	}
	if got := logs("--limit-bytes=10"); got != whole[:10] {
		t.Errorf("--limit-bytes=10: %q", got)
	}
	if got := logs("--since=1h"); got != whole {
		t.Errorf("--since=1h: %q", got)
	}
	if got := logs("--since-time=" + time.Now().Add(time.Hour).Format(time.RFC3339)); got != "" {
		t.Errorf("since an hour from now: %q", got)
	}
	first, _, _ := strings.Cut(logs("--timestamps"), "\n")
	if stamp, rest, _ := strings.Cut(first, " "); rest != "line 1" || !isTime(stamp) {
		t.Errorf("--timestamps begins with %q", first)
	}
	if got := e.kubectl(t, "-n", ns, "logs", "talker", "--all-containers", "--prefix"); !strings.Contains(got, "/talker/second] ") || !strings.Contains(got, "/talker/main] line 5") {
		t.Errorf("--all-containers: %q", got)
	}
	if out, err := e.Plane.Kubectl(t.Context(), "-n", ns, "logs", "talker", "-c", "nobody"); err == nil {
		t.Errorf("the log of a container that is not there: %q", out)
	}
}

func isTime(text string) bool {
	_, err := time.Parse(time.RFC3339Nano, text)
	return err == nil
}

func kubectlLogsPrevious(t *testing.T, e *env, ns string) {
	e.watch.exceptIn(ns)
	e.applyIn(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: again}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{name: state, emptyDir: {}}]
  containers:
  - name: main
    image: BUSYBOX
    command: [sh, -c, "if [ -e /state/ran ]; then echo second; exec sleep 10000; fi; touch /state/ran; echo first"]
    volumeMounts: [{name: state, mountPath: /state}]
`)
	e.untilPod(t, patience, ns, "again", func(p *corev1.Pod) error {
		if restarts(p, "main") != 1 {
			return errors.New("not restarted yet")
		}
		return ready(p)
	})
	e.eventually(t, patience, func() error {
		now, before := e.kubectl(t, "-n", ns, "logs", "again"), e.kubectl(t, "-n", ns, "logs", "again", "--previous")
		if now != "second\n" || before != "first\n" {
			return fmt.Errorf("the logs are %q, and before %q", now, before)
		}
		return nil
	})
}

// kubectlLogsFollow: lines come as they are written, and the command ends when
// the container does.
func kubectlLogsFollow(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: slow}
spec:
  restartPolicy: Never
  volumes: [{name: go, emptyDir: {}}]
  containers:
  - name: main
    image: BUSYBOX
    command: [sh, -c, "mkfifo /go/on; echo first; cat /go/on; echo last"]
    volumeMounts: [{name: go, mountPath: /go}]
`)
	e.untilPod(t, patience, ns, "slow", ready)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := e.Plane.KubectlCommand(ctx, "-n", ns, "logs", "-f", "slow")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	var got []string
	for lines.Scan() {
		got = append(got, lines.Text())
		if lines.Text() == "first" { // only now is it let go on
			e.kubectl(t, "-n", ns, "exec", "slow", "--", "sh", "-c", "echo middle > /go/on")
		}
	}
	if err := cmd.Wait(); err != nil || strings.Join(got, " ") != "first middle last" {
		t.Errorf("logs -f said %q, and ended with %v", got, err)
	}
}

const sleeper = `
apiVersion: v1
kind: Pod
metadata: {name: sleeper}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: BUSYBOX, command: [sleep, "10000"]}]
`

func kubectlExec(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, sleeper)
	e.untilPod(t, patience, ns, "sleeper", ready)
	for _, p := range protocols() {
		t.Run(p.name, func(t *testing.T) {
			run := func(stdin string, args ...string) (out, errs string, code int) {
				cmd := p.command(e, t.Context(), append([]string{"-n", ns, "exec", "-i", "sleeper", "--"}, args...)...)
				var stdout, stderr bytes.Buffer
				cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
				_ = cmd.Run() // the code tells
				return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
			}
			if out, errs, code := run("", "sh", "-c", "echo out; echo err >&2; exit 42"); out != "out\n" || !strings.Contains(errs, "err\n") || code != 42 {
				t.Errorf("exec: %q, %q, %d", out, errs, code)
			}
			big := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
			if out, errs, code := run(big, "cat"); out != big || code != 0 {
				t.Errorf("1 MiB through cat came back as %d bytes, %q, %d", len(out), errs, code)
			}
			if _, errs, code := run("", "no-such-program"); code == 0 || !strings.Contains(errs, "no-such-program") {
				t.Errorf("a program that is not there: %q, %d", errs, code)
			}
		})
	}
}

// kubectlExecTTY needs a terminal on our side: script makes one.
func kubectlExecTTY(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, sleeper)
	e.untilPod(t, patience, ns, "sleeper", ready)
	for _, p := range protocols() {
		t.Run(p.name, func(t *testing.T) {
			kubectl := p.command(e, t.Context(), "-n", ns, "exec", "-it", "sleeper", "--", "sh", "-c", `'tty; until stty size 2>/dev/null | grep "33 77"; do sleep 0.1; done; exit 3'`) // the size comes a moment after the start
			cmd := exec.CommandContext(t.Context(), "script", "-qec", "stty rows 33 cols 77; "+strings.Join(kubectl.Args, " "), "/dev/null")
			cmd.Env = kubectl.Env
			var stdout bytes.Buffer
			cmd.Stdout = &stdout
			_ = cmd.Run() // the code tells
			if got := stdout.String(); !strings.Contains(got, "/dev/pts/") || !strings.Contains(got, "33 77") || cmd.ProcessState.ExitCode() != 3 {
				t.Errorf("exec -it: %q, %d", got, cmd.ProcessState.ExitCode())
			}
		})
	}
}

func kubectlAttach(t *testing.T, e *env, ns string) {
	for _, p := range protocols() {
		t.Run(p.name, func(t *testing.T) {
			name := "reader-" + p.name
			e.applyIn(t, ns, strings.ReplaceAll(`
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  restartPolicy: Never
  containers:
  - {name: main, image: BUSYBOX, stdin: true, stdinOnce: true, command: [sh, -c, "while read line; do echo got $line; done; echo end"]}
`, "NAME", name))
			e.untilPod(t, patience, ns, name, ready)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := p.command(e, ctx, "-n", ns, "attach", "-i", name)
			var stderr bytes.Buffer
			cmd.Stdin, cmd.Stderr = strings.NewReader("one\ntwo\n"), &stderr
			out, err := cmd.Output()
			if err != nil || !strings.Contains(string(out), "got one\ngot two\n") {
				t.Errorf("attach: %q, %v, %s", out, err, &stderr)
			}
			e.untilPod(t, patience, ns, name, ended(corev1.PodSucceeded))
		})
	}
}

func kubectlCopy(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, sleeper)
	e.untilPod(t, patience, ns, "sleeper", ready)
	dir := t.TempDir()
	content := strings.Repeat("nodekit ", 1<<16)
	if err := os.WriteFile(filepath.Join(dir, "there"), []byte(content), 0o640); err != nil {
		t.Fatal(err)
	}
	e.kubectl(t, "-n", ns, "cp", filepath.Join(dir, "there"), "sleeper:/tmp/there")
	if got := e.kubectl(t, "-n", ns, "exec", "sleeper", "--", "cat", "/tmp/there"); got != content {
		t.Errorf("the copy in the pod has %d bytes, want %d", len(got), len(content))
	}
	e.kubectl(t, "-n", ns, "cp", "sleeper:/tmp/there", filepath.Join(dir, "back"))
	if got, err := os.ReadFile(filepath.Join(dir, "back")); err != nil || string(got) != content {
		t.Errorf("the copy from the pod has %d bytes, want %d (%v)", len(got), len(content), err)
	}
}

func kubectlPortForward(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: web, image: WEB, args: ["-root=/etc"]}]
`)
	e.untilPod(t, patience, ns, "web", ready)
	for _, p := range protocols() {
		t.Run(p.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := p.command(e, ctx, "-n", ns, "port-forward", "pod/web", ":8080")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { cancel(); _ = cmd.Wait() }()
			line, err := bufio.NewReader(stdout).ReadString('\n')
			if err != nil {
				t.Fatalf("port-forward said %q, %v, %s", line, err, &stderr)
			}
			address, _, _ := strings.Cut(strings.TrimPrefix(line, "Forwarding from "), " ")
			for range 5 { // each over a stream of its own
				if page, err := fetchOnce(ctx, "http://"+address+"/passwd"); err != nil || !strings.Contains(page, "nobody") {
					t.Errorf("through %q: %q, %v", line, page, err)
				}
			}
		})
	}
}

func fetchOnce(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	reply, err := testbed.PodClient().Do(req)
	if err != nil {
		return "", err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	return string(text), err
}

// kubectlDebug: an ephemeral container joins a pod that runs, and sees the
// processes of its target.
func kubectlDebug(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: quiet}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: web, image: WEB, args: ["-root=/etc"]}]
`)
	before := e.untilPod(t, patience, ns, "quiet", ready)
	e.kubectl(t, "-n", ns, "debug", "quiet", "--image="+manifest("BUSYBOX"), "--container=look", "--target=web", "--",
		"sh", "-c", "ps; wget -qO- http://127.0.0.1:8080/passwd")
	after := e.untilPod(t, patience, ns, "quiet", func(p *corev1.Pod) error {
		for _, s := range p.Status.EphemeralContainerStatuses {
			if s.Name == "look" && s.State.Terminated != nil {
				return nil
			}
		}
		return fmt.Errorf("the ephemeral container has not ended: %+v", p.Status.EphemeralContainerStatuses)
	})
	if x := after.Status.EphemeralContainerStatuses[0].State.Terminated; x.ExitCode != 0 {
		t.Errorf("it ended with %+v", x)
	}
	if said := e.kubectl(t, "-n", ns, "logs", "quiet", "-c", "look"); !strings.Contains(said, "/web") || !strings.Contains(said, "nobody") {
		t.Errorf("it saw %q", said)
	}
	if now, was := after.Status.ContainerStatuses[0], before.Status.ContainerStatuses[0]; now.ContainerID != was.ContainerID || now.RestartCount != 0 || ready(after) != nil {
		t.Errorf("the pod itself did not run on: %s", summary(after))
	}
}

// kubectlRun: as users try things out; the exit code comes back.
func kubectlRun(t *testing.T, e *env, ns string) {
	cmd := e.Plane.KubectlCommand(t.Context(), "-n", ns, "run", "try", "-i", "--rm", "--restart=Never", "--quiet",
		"--image="+manifest("BUSYBOX"), "--", "sh", "-c", "cat; exit 5")
	cmd.Stdin = strings.NewReader("hello\n")
	out, _ := cmd.Output() // the code tells
	if !strings.Contains(string(out), "hello\n") || cmd.ProcessState.ExitCode() != 5 {
		t.Errorf("run: %q, %d", out, cmd.ProcessState.ExitCode())
	}
}
