package agent

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/test/integration/testbed"
)

func web(name string, args ...string) corev1.Container {
	return corev1.Container{Name: name, Image: testbed.WebImage, Args: args}
}

func serves(t *testing.T, e *env) {
	e.apply(t, newPod("serves", web("web", "-root=/etc")))
	pod := e.until(t, "serves", ready)
	ip, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil || !e.bed.Subnet.Contains(ip) {
		t.Errorf("the pod's IP is %q, not of %v", pod.Status.PodIP, e.bed.Subnet)
	}
	if pod.Status.HostIP != e.bed.NodeIP.String() {
		t.Errorf("the host's IP is %q, not %v", pod.Status.HostIP, e.bed.NodeIP)
	}
	fetch(t, "http://"+pod.Status.PodIP+":8080/passwd", "nobody")
	c, _ := statusOf(pod, "web")
	if !strings.HasPrefix(c.ContainerID, "containerd://") || c.ImageID == "" || c.Image == "" || c.State.Running == nil || c.Started == nil || !*c.Started {
		t.Errorf("the container's status is not whole: %+v", c)
	}
	e.remove(t, "serves")
	e.gone(t, pod)
}

func fetch(t *testing.T, url, want string) {
	t.Helper()
	page, err := testbed.Fetch(t.Context(), url)
	if err != nil || !strings.Contains(page, want) {
		t.Errorf("GET %s: %q, %v; want %q in it", url, page, err, want)
	}
}

func hostNetworkAndPort(t *testing.T, e *env) {
	host := newPod("host-network", web("web", "-addr=:18090", "-root=/etc"))
	host.Spec.HostNetwork = true
	e.apply(t, host)
	port := newPod("host-port", web("web", "-root=/etc"))
	port.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 18091}}
	e.apply(t, port)

	pod := e.until(t, "host-network", ready)
	if pod.Status.PodIP != e.bed.NodeIP.String() {
		t.Errorf("a pod of the host's network has the IP %q, not %v", pod.Status.PodIP, e.bed.NodeIP)
	}
	fetch(t, fmt.Sprintf("http://%v:18090/passwd", e.bed.NodeIP), "nobody")
	e.until(t, "host-port", ready)
	fetch(t, fmt.Sprintf("http://%v:18091/passwd", e.bed.NodeIP), "nobody")
}

func exitCodes(t *testing.T, e *env) {
	for _, c := range []struct {
		name, script, reason string
		code                 int32
		phase                corev1.PodPhase
	}{
		{"exit-zero", "exit 0", "Completed", 0, corev1.PodSucceeded},
		{"exit-three", "exit 3", "Error", 3, corev1.PodFailed},
		// A first process is deaf to signals of its own namespace, and $$ is how
		// a pod spells $.
		{"exit-by-signal", "sh -c 'kill -9 $$$$'; exit $?", "Error", 137, corev1.PodFailed},
	} {
		pod := newPod(c.name, shell("main", c.script))
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		e.apply(t, pod)
		got := e.until(t, c.name, phase(c.phase))
		status, _ := statusOf(got, "main")
		end := status.State.Terminated
		if end == nil || end.ExitCode != c.code || end.Reason != c.reason || end.FinishedAt.IsZero() || status.RestartCount != 0 {
			t.Errorf("%s: %+v, want code %d, reason %s", c.name, status, c.code, c.reason)
		}
	}
}

func onFailure(t *testing.T, e *env) {
	pod := newPod("on-failure", shell("main", `
		n=$(cat /data/n 2>/dev/null || echo 0); echo $((n+1)) > /data/n
		[ $n -ge 1 ]`))
	pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	pod.Spec.Volumes = []corev1.Volume{{Name: "data"}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	e.apply(t, pod)
	e.until(t, "on-failure", all(phase(corev1.PodSucceeded), restarts("main", 1)))
}

// restartBackOff measures by the runtime's own clock: the first restart comes
// at once, the second after 10 s.
func restartBackOff(t *testing.T, e *env) {
	pod := newPod("back-off", shell("main", "exit 7"))
	e.apply(t, pod)
	waits := e.until(t, "back-off", all(restarts("main", 1), waiting("main", "CrashLoopBackOff")))
	c, _ := statusOf(waits, "main")
	if !strings.HasPrefix(c.State.Waiting.Message, "back-off 10s restarting failed container=main pod=back-off-bed_default(") {
		t.Errorf("the message of the back-off is %q", c.State.Waiting.Message)
	}
	if last := c.LastTerminationState.Terminated; last == nil || last.ExitCode != 7 {
		t.Errorf("the last state is %+v", c.LastTerminationState)
	}
	before := e.newestStatus(t, string(waits.UID), "main")
	again := e.until(t, "back-off", all(restarts("main", 2), waiting("main", "CrashLoopBackOff")))
	after := e.newestStatus(t, string(again.UID), "main")
	if gap := time.Duration(after.StartedAt - before.FinishedAt); gap < 10*time.Second || gap > 14*time.Second {
		t.Errorf("the second restart came %v after the end, not 10 s", gap)
	}
}

// newestStatus asks the runtime for the newest container of that name.
func (e *env) newestStatus(t *testing.T, uid, container string) *runtimeapi.ContainerStatus {
	t.Helper()
	list, err := e.bed.CRI().ListContainers(t.Context(), &runtimeapi.ListContainersRequest{
		Filter: &runtimeapi.ContainerFilter{LabelSelector: map[string]string{uidLabel: uid, "io.kubernetes.container.name": container}},
	})
	if err != nil || len(list.GetContainers()) == 0 {
		t.Fatalf("no container %s of pod %s: %v", container, uid, err)
	}
	newest := list.Containers[0]
	for _, c := range list.Containers {
		if c.CreatedAt > newest.CreatedAt {
			newest = c
		}
	}
	status, err := e.bed.CRI().ContainerStatus(t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: newest.Id})
	if err != nil {
		t.Fatal(err)
	}
	return status.GetStatus()
}

// restartRules: a container of a Never pod starts again for one exit code only.
func restartRules(t *testing.T, e *env) {
	c := shell("main", `
		n=$(cat /data/n 2>/dev/null || echo 0); echo $((n+1)) > /data/n
		[ $n -ge 1 ] && exit 5; exit 42`)
	c.RestartPolicy = ptr(corev1.ContainerRestartPolicyNever)
	c.RestartPolicyRules = []corev1.ContainerRestartRule{{
		Action: corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
			Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42},
		},
	}}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	pod := newPod("restart-rules", c)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.Volumes = []corev1.Volume{{Name: "data"}}
	e.apply(t, pod)
	got := e.until(t, "restart-rules", all(phase(corev1.PodFailed), restarts("main", 1)))
	if status, _ := statusOf(got, "main"); status.State.Terminated == nil || status.State.Terminated.ExitCode != 5 {
		t.Errorf("it ended with %+v, not code 5", status.State)
	}
}

func terminationMessage(t *testing.T, e *env) {
	file := shell("file", "echo -n from the file > /dev/termination-log; exit 1")
	log := shell("log", "echo first; echo from the log; exit 1")
	log.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	pod := newPod("message", file, log)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	e.apply(t, pod)
	got := e.until(t, "message", phase(corev1.PodFailed))
	for container, want := range map[string]string{"file": "from the file", "log": "first\nfrom the log\n"} {
		status, _ := statusOf(got, container)
		if end := status.State.Terminated; end == nil || end.Message != want {
			t.Errorf("%s: %+v, want the message %q", container, end, want)
		}
	}
}

func outOfMemory(t *testing.T, e *env) {
	c := shell("main", "tail /dev/zero")
	c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("20Mi")}
	pod := newPod("oom", c)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	e.apply(t, pod)
	got := e.until(t, "oom", phase(corev1.PodFailed))
	status, _ := statusOf(got, "main")
	if end := status.State.Terminated; end == nil || end.Reason != "OOMKilled" || end.ExitCode != 137 {
		t.Errorf("it ended with %+v, not OOMKilled", end)
	}
}

// activeDeadline leaves time for a slow start, so that a container is there to
// be stopped.
func activeDeadline(t *testing.T, e *env) {
	pod := newPod("deadline", shell("main", sayingUntilTerm("main")))
	pod.Spec.ActiveDeadlineSeconds = ptr(int64(10))
	tr := traced(t, pod)
	e.apply(t, pod)
	got := e.until(t, "deadline", phase(corev1.PodFailed))
	if got.Status.Reason != "DeadlineExceeded" {
		t.Errorf("it failed with %q, not DeadlineExceeded", got.Status.Reason)
	}
	awaitLine(t, tr, "main stops")
	wantOrder(t, tr.lines(t), "main starts", "main stops")
}

// sandboxCrash: the pod gets a new sandbox, a new IP and new containers.
func sandboxCrash(t *testing.T, e *env) {
	e.apply(t, newPod("sandbox-crash", shell("main", untilTerm)))
	before := e.until(t, "sandbox-crash", ready)
	if err := e.bed.CrashSandbox(t.Context(), e.sandboxOf(t, before)); err != nil {
		t.Fatal(err)
	}
	old, _ := statusOf(before, "main")
	after := e.until(t, "sandbox-crash", all(ready, func(p corev1.Pod) error {
		if c, _ := statusOf(p, "main"); c.ContainerID == old.ContainerID {
			return fmt.Errorf("it is still container %s", c.ContainerID)
		}
		return nil
	}))
	if after.UID != before.UID {
		t.Errorf("the pod's UID changed from %s to %s", before.UID, after.UID)
	}
	e.remove(t, "sandbox-crash")
	e.gone(t, after)
}

// sandboxOf is the pod's only sandbox.
func (e *env) sandboxOf(t *testing.T, pod corev1.Pod) string {
	t.Helper()
	list, err := e.bed.CRI().ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{
		Filter: &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{uidLabel: string(pod.UID)}},
	})
	if err != nil || len(list.GetItems()) != 1 {
		t.Fatalf("the sandboxes of %s are %v, %v", pod.Name, list.GetItems(), err)
	}
	return list.Items[0].Id
}
