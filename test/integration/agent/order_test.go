package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// sayingUntilTerm says that it starts and stops.
func sayingUntilTerm(name string) string {
	return say(name+" starts") + "trap \"" + say(name+" stops") + "exit 0\" TERM; sleep 10000 & wait"
}

func sidecar(c corev1.Container) corev1.Container {
	c.RestartPolicy = ptr(corev1.ContainerRestartPolicyAlways)
	return c
}

// orderOfInitAndSidecars: up in order, one after another; down the main
// containers first, then the sidecars in reverse.
func orderOfInitAndSidecars(t *testing.T, e *env) {
	pod := newPod("order", shell("main", sayingUntilTerm("main")))
	pod.Spec.InitContainers = []corev1.Container{
		shell("first", say("first starts")+"sleep 0.5; "+say("first ends")),
		sidecar(shell("side-a", sayingUntilTerm("side-a"))),
		shell("second", say("second starts")+"sleep 0.5; "+say("second ends")),
		sidecar(shell("side-b", sayingUntilTerm("side-b"))),
	}
	tr := traced(t, pod)
	e.apply(t, pod)
	got := e.until(t, "order", ready)
	// Started says no more than that the process is there: side-b may still be
	// on the way to its first line.
	awaitLine(t, tr, "main starts")
	awaitLine(t, tr, "side-b starts")
	up := tr.lines(t)
	wantOrder(t, up, "first starts", "first ends", "second starts", "second ends", "main starts")
	wantOrder(t, up, "first ends", "side-a starts")
	wantOrder(t, up, "second ends", "side-b starts")
	if init, _ := statusOf(got, "first"); init.State.Terminated == nil || init.State.Terminated.Reason != "Completed" {
		t.Errorf("the first init container is %+v", init.State)
	}
	if side, _ := statusOf(got, "side-a"); side.State.Running == nil || !side.Ready {
		t.Errorf("the sidecar is %+v", side)
	}

	e.remove(t, "order")
	e.gone(t, got)
	wantOrder(t, tr.lines(t), "main stops", "side-b stops", "side-a stops")
}

// awaitLine waits until a line was said.
func awaitLine(t *testing.T, tr trace, line string) {
	t.Helper()
	eventually(t, 20*time.Second, func() error {
		if lines := tr.lines(t); !slices.Contains(lines, line) {
			return fmt.Errorf("nobody said %q, only %q", line, lines)
		}
		return nil
	})
}

// wantOrder checks that these lines were said exactly once, in this order.
func wantOrder(t *testing.T, lines []string, want ...string) {
	t.Helper()
	got := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !slices.Contains(want, l) })
	if !slices.Equal(got, want) {
		t.Errorf("said in the order %q, want %q\nall: %q", got, want, lines)
	}
}

// initFails: under Never a failed init container fails the pod, and no main
// container ever starts.
func initFails(t *testing.T, e *env) {
	pod := newPod("init-fails", shell("main", say("main starts")))
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.InitContainers = []corev1.Container{shell("init", say("init starts")+"exit 4"), shell("after", say("after starts"))}
	tr := traced(t, pod)
	e.apply(t, pod)
	got := e.until(t, "init-fails", phase(corev1.PodFailed))
	if lines := tr.lines(t); !slices.Equal(lines, []string{"init starts"}) {
		t.Errorf("said %q, want only that init starts", lines)
	}
	if init, _ := statusOf(got, "init"); init.State.Terminated == nil || init.State.Terminated.ExitCode != 4 {
		t.Errorf("the init container is %+v", init.State)
	}
	if main, _ := statusOf(got, "main"); main.State.Waiting == nil || main.State.Waiting.Reason != "PodInitializing" {
		t.Errorf("the main container, which never started, is %+v", main.State)
	}
}

func postStart(t *testing.T, e *env) {
	first := shell("first", untilTerm)
	first.Lifecycle = &corev1.Lifecycle{PostStart: exec(say("hook starts") + "sleep 0.5; " + say("hook ends"))}
	pod := newPod("post-start", first, shell("second", sayingUntilTerm("second")))
	tr := traced(t, pod)
	e.apply(t, pod)
	e.until(t, "post-start", ready)
	awaitLine(t, tr, "second starts")
	wantOrder(t, tr.lines(t), "hook starts", "hook ends")
}

func exec(script string) *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", script}}}
}

// postStartFails: the container is killed, and starts again after a back-off.
func postStartFails(t *testing.T, e *env) {
	c := shell("main", sayingUntilTerm("main"))
	c.Lifecycle = &corev1.Lifecycle{PostStart: exec("exit 1")}
	pod := newPod("post-start-fails", c)
	tr := traced(t, pod)
	e.apply(t, pod)
	e.until(t, "post-start-fails", func(p corev1.Pod) error {
		c, _ := statusOf(p, "main")
		if c.RestartCount < 1 {
			return fmt.Errorf("it was not started again: %+v", c)
		}
		return nil
	})
	if err := ready(e.until(t, "post-start-fails", restarts("main", 1))); err == nil {
		t.Error("a container whose postStart hook failed is ready")
	}
	if n := strings.Count(strings.Join(tr.lines(t), "\n"), "main starts"); n > 2 {
		t.Errorf("it was started %d times", n)
	}
}
