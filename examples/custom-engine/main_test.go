package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/examples/internal/exampletest"
	"nodekit.dev/node/source"
)

// bench runs the program with pods that the test sets.
type bench struct {
	*exampletest.Running
	root string
	pods *source.Channel
}

func newBench(t *testing.T, pods ...*corev1.Pod) bench {
	t.Helper()
	b := bench{root: t.TempDir()}
	var err error
	if b.pods, err = source.NewChannel("go", source.Config{NodeName: "processes"}); err != nil {
		t.Fatal(err)
	}
	b.set(t, pods...)
	b.Running = exampletest.Run(t, func(ctx context.Context, out io.Writer) error {
		return run(ctx, config(b.root), b.pods, out)
	})
	return b
}

func (b bench) set(t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	if err := b.pods.Set(pods); err != nil {
		t.Fatal(err)
	}
}

// shell is a pod that runs a script. A pod spells "$" as "$$", so "$$$$" is the
// number of the shell.
func shell(name, script string, edit ...func(*corev1.Pod)) *corev1.Pod {
	pod := processPod(name, []string{"sh", "-c", script})
	for _, e := range edit {
		e(pod)
	}
	return pod
}

func once(pod *corev1.Pod) { pod.Spec.RestartPolicy = corev1.RestartPolicyNever }

func grace(seconds int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = &seconds }
}

// alive says whether the process whose number is in that file is there.
func alive(t *testing.T, path string) bool {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// TestExitIsSeen: the exit of a process is a hint, and its code and message are
// in the status; what it wrote is in the pod's log.
func TestExitIsSeen(t *testing.T) {
	b := newBench(t, shell("job", `echo working; echo "out of paper" > $TERMINATION_LOG; exit 3`, once))
	b.Await(`job Failed  main=exited(3 "out of paper`)
	logs, err := filepath.Glob(filepath.Join(b.root, "logs/default_job_*/main/0.log"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs %v, %v", logs, err)
	}
	if text, err := os.ReadFile(logs[0]); string(text) != "working\n" {
		t.Errorf("the log: %q, %v", text, err)
	}
	b.Stop()
}

// TestRestart: the stock pod machine restarts what ends, the first time at once.
func TestRestart(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "marker")
	b := newBench(t, shell("again", `test -e `+marker+` || { touch `+marker+`; exit 1; }; exec sleep 3600`))
	b.Await("again Running  main=running(restarts 1)")
	b.Stop()
}

// TestStopWithGrace: TERM first, with time to finish; the children of the
// process go too.
func TestStopWithGrace(t *testing.T) {
	dir := t.TempDir()
	b := newBench(t, shell("polite", `cd `+dir+`; sleep 3600 & echo $! > child; trap 'echo bye > bye; exit 0' TERM; echo $$$$ > pid; wait`, grace(20)))
	b.Await("polite Running  main=running(restarts 0)")
	await(t, dir, "pid")
	b.set(t) // the source wants it no more
	b.Await(`polite Succeeded  main=exited(0 "")`)
	if text, err := os.ReadFile(filepath.Join(dir, "bye")); string(text) != "bye\n" {
		t.Errorf("it had no time to finish: %q, %v", text, err)
	}
	for _, file := range []string{"pid", "child"} {
		awaitGone(t, filepath.Join(dir, file))
	}
	b.Stop()
}

// TestKillAfterGrace: who does not listen is killed.
func TestKillAfterGrace(t *testing.T) {
	dir := t.TempDir()
	b := newBench(t, shell("deaf", `cd `+dir+`; trap '' TERM; echo $$$$ > pid; while :; do sleep 3600; done`, grace(1)))
	b.Await("deaf Running")
	await(t, dir, "pid")
	b.set(t)
	b.Await(`deaf Failed  main=exited(137 "")`)
	awaitGone(t, filepath.Join(dir, "pid"))
	b.Stop()
}

// TestPreStop: handlers run beside the process.
func TestPreStop(t *testing.T) {
	dir := t.TempDir()
	b := newBench(t, shell("hooked", `exec sleep 3600`, grace(5), func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
			Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "echo stopping > " + dir + "/prestop"}},
		}}
	}))
	b.Await("hooked Running")
	b.set(t)
	b.Await(`hooked Failed  main=exited(143 "")`)
	if text, err := os.ReadFile(filepath.Join(dir, "prestop")); string(text) != "stopping\n" {
		t.Errorf("the handler did not run: %q, %v", text, err)
	}
	b.Stop()
}

// TestStopEndsTheProcesses: they end with the program, and no goroutine stays.
func TestStopEndsTheProcesses(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	b := newBench(t, shell("left", `echo $$$$ > `+dir+`/pid; exec sleep 3600`))
	b.Await("left Running")
	await(t, dir, "pid")
	b.Stop()
	if alive(t, filepath.Join(dir, "pid")) {
		t.Error("the process runs on")
	}
}

// TestRefused: what asks for a container is not run as a process.
func TestRefused(t *testing.T) {
	yes := true
	for field, edit := range map[string]func(*corev1.Pod){
		"hostNetwork": func(pod *corev1.Pod) { pod.Spec.HostNetwork = false },
		"volumes": func(pod *corev1.Pod) {
			pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		},
		"securityContext": func(pod *corev1.Pod) {
			pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: &yes}
		},
		"command": func(pod *corev1.Pod) { pod.Spec.Containers[0].Command = nil },
	} {
		pod := shell("p", "exit 0", edit)
		if got := unsupported(&pod.Spec); !strings.Contains(got, field) {
			t.Errorf("%s: refused for %q", field, got)
		}
	}
	b := newBench(t, shell("boxed", "exit 0", func(pod *corev1.Pod) { pod.Spec.HostNetwork = false }),
		shell("foreign", "exit 0", func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "busybox" }))
	b.Await("boxed Failed NotAProcess")
	b.Await("foreign Pending  main=waiting(ErrImagePull)")
	b.Stop()
}
