package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"nodekit.dev/test/integration/testbed"
)

// quickProbe is made each second.
func quickProbe(handler corev1.ProbeHandler, failures int32) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: handler, PeriodSeconds: 1, FailureThreshold: failures}
}

func httpGet(path string) corev1.ProbeHandler {
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http")}}
}

// patient is a web server that can be made sick, with an HTTP port by name and a
// gRPC port.
func patient() corev1.Container {
	c := web("web", "-grpc-addr=:9090", "-root=/etc")
	c.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}
	return c
}

// toggle makes a patient sick, or well again.
func toggle(t *testing.T, pod corev1.Pod) {
	t.Helper()
	if err := post(t, pod, "/healthz/toggle"); err != nil {
		t.Fatal(err)
	}
}

func post(t *testing.T, pod corev1.Pod, path string) error {
	t.Helper()
	return testbed.Post(t.Context(), "http://"+pod.Status.PodIP+":8080"+path)
}

func notReady(p corev1.Pod) error {
	if ready(p) == nil {
		return errors.New("is ready")
	}
	if c, found := statusOf(p, "web"); !found || c.State.Running == nil {
		return fmt.Errorf("does not run: %+v", c.State)
	}
	return nil
}

// readiness comes and goes with what each kind of probe finds, and never
// restarts anything.
func readiness(t *testing.T, e *env) {
	for name, handler := range map[string]corev1.ProbeHandler{
		"ready-http": httpGet("/healthz"),
		"ready-grpc": {GRPC: &corev1.GRPCAction{Port: 9090}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := patient()
			c.ReadinessProbe = quickProbe(handler, 1)
			e.apply(t, newPod(name, c))
			pod := e.until(t, name, ready)
			toggle(t, pod)
			e.until(t, name, notReady)
			toggle(t, pod)
			e.until(t, name, all(ready, restarts("web", 0)))
		})
	}
}

// readinessByCommand and by connection: what is there to see in the container.
func readinessByCommand(t *testing.T, e *env) {
	c := shell("web", untilTerm)
	c.ReadinessProbe = quickProbe(corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-e", "/tmp/ok"}}}, 1)
	other := shell("other", "sleep 2; exec httpd -f -p 7777")
	other.ReadinessProbe = quickProbe(corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(7777)}}, 1)
	e.apply(t, newPod("ready-exec", c, other))
	pod := e.until(t, "ready-exec", func(p corev1.Pod) error {
		if c, _ := statusOf(p, "other"); !c.Ready {
			return errors.New("nobody found its port open")
		}
		return notReady(p)
	})
	e.execIn(t, pod, "web", "touch", "/tmp/ok")
	e.until(t, "ready-exec", ready)
	e.execIn(t, pod, "web", "rm", "/tmp/ok")
	e.until(t, "ready-exec", all(notReady, restarts("web", 0), restarts("other", 0)))
}

// livenessRestarts: a sick container is killed within the probe's own grace and
// runs again.
func livenessRestarts(t *testing.T, e *env) {
	c := patient()
	c.Args = append(c.Args, "-ignore-term")
	c.LivenessProbe = quickProbe(httpGet("/healthz"), 2)
	c.LivenessProbe.TerminationGracePeriodSeconds = ptr(int64(1))
	c.ReadinessProbe = quickProbe(httpGet("/healthz"), 1)
	pod := newPod("liveness", c)
	pod.Spec.TerminationGracePeriodSeconds = ptr(int64(600))
	e.apply(t, pod)
	toggle(t, e.until(t, "liveness", ready))
	got := e.until(t, "liveness", all(ready, restarts("web", 1)))
	last, _ := statusOf(got, "web")
	if end := last.LastTerminationState.Terminated; end == nil || end.ExitCode != 137 {
		t.Errorf("the run before ended with %+v, not by SIGKILL", last.LastTerminationState)
	}
	e.remove(t, "liveness")
	eventually(t, patience, func() error {
		// Instead of 600 s of waiting. It ends before it answers, and is started
		// again where the agent has not seen the removal yet.
		_ = post(t, got, "/exit?code=0")
		return e.checkGone(t.Context(), got)
	})
}

// startupProtects: a slow starter is not probed for life before it has started.
func startupProtects(t *testing.T, e *env) {
	c := patient()
	c.Args = append(c.Args, "-start-delay=4s")
	c.StartupProbe = quickProbe(corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("http")}}, 60)
	c.LivenessProbe = quickProbe(httpGet("/healthz"), 1)
	e.apply(t, newPod("startup", c))
	e.until(t, "startup", func(p corev1.Pod) error {
		if c, _ := statusOf(p, "web"); c.State.Running == nil || c.Started == nil || *c.Started || c.Ready {
			return fmt.Errorf("not running and unstarted: %+v", c)
		}
		return nil
	})
	e.until(t, "startup", all(ready, restarts("web", 0)))
}

// TestProbesOverRestart: an agent that is killed and started again never tells
// that a pod is not ready which is, and finds a pod that became sick meanwhile.
func TestProbesOverRestart(t *testing.T) {
	t.Parallel()
	eachContainerd(t, probesOverRestart)
}

func probesOverRestart(t *testing.T, version string) {
	e := newEnv(t, version)
	names := []string{"http", "grpc", "sick"}
	for _, name := range names {
		c := patient()
		c.StartupProbe = quickProbe(httpGet("/healthz"), 5)
		c.ReadinessProbe = quickProbe(httpGet("/healthz"), 1)
		if name == "grpc" {
			c.ReadinessProbe = quickProbe(corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 9090}}, 1)
			c.ReadinessProbe.PeriodSeconds = 3600 // its next check is far away
		}
		e.apply(t, newPod(name, c))
	}
	var sick corev1.Pod
	for _, name := range names {
		sick = e.until(t, name, ready)
	}
	e.awaitKept(t, len(names))
	for range 3 {
		within(t, patience, e.agent.Kill)
		within(t, patience, e.agent.Start)
		for _, name := range names {
			pod := e.until(t, name, known) // the first that is told
			if err := ready(pod); err != nil {
				t.Errorf("%s after the restart: %v", name, err)
			}
		}
	}
	within(t, patience, e.agent.Kill)
	toggle(t, sick)
	within(t, patience, e.agent.Start)
	e.until(t, "sick", notReady)
	e.until(t, "http", ready)
}

// known says that the agent has told something of the pod since it started.
func known(p corev1.Pod) error {
	if p.Status.Phase == "" {
		return errors.New("nothing is known of it yet")
	}
	return nil
}

// awaitKept waits until the readiness of that many containers is on disk.
func (e *env) awaitKept(t *testing.T, containers int) {
	t.Helper()
	eventually(t, patience, func() error {
		data, err := os.ReadFile(filepath.Join(e.agent.Root, "prober_state"))
		if err == nil && strings.Count(string(data), `"Readiness":{"value":"success"`) < containers {
			err = fmt.Errorf("not all are kept as ready: %s", data)
		}
		return err
	})
}
