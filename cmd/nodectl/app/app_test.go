package app

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
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
	"nodekit.dev/node/podactor"
	"nodekit.dev/node/server"
	"nodekit.dev/runtime"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// recorded is a trace as an actor records it: a pod is taken on, then a look
// finds its container dead and its network gone.
func recorded() podactor.Trace {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid-web"},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "app", Image: "web:1"}}},
	}
	in := lifecycle.Input{Now: now, Want: lifecycle.Want{
		UID: "uid-web", Namespace: "default", Name: "web", Pod: pod, Static: true, Rules: lifecycle.DefaultRules(),
	}}
	in.Seen.Looked, in.Seen.VolumesLooked, in.Seen.NetworkReady = true, true, true
	t := podactor.Trace{Version: podactor.TraceVersion, UID: "uid-web", Namespace: "default", Name: "web"}
	record := func() {
		plan := lifecycle.Decide(in)
		next := plan.Mem
		plan.Mem = lifecycle.Memory{}
		t.Entries = append(t.Entries, podactor.TraceEntry{Input: in, Plan: plan})
		in.Mem = next
		in.Now = in.Now.Add(1500 * time.Millisecond)
	}
	record()
	in.Seen.Admission.Verdict = lifecycle.VerdictAdmit
	record()
	in.Seen.Prepared = true
	record()
	in.Seen.Cgroup = true
	in.Seen.Failed = map[lifecycle.Key]lifecycle.Failure{lifecycle.KeyImage("app"): {Reason: "ErrImagePull", Message: "no\nroute", Count: 2, RetryAt: in.Now.Add(time.Minute)}}
	record()
	return t
}

// agent has the recorded pod, and one of the same name that leaves.
type agent struct{}

func (agent) Pods() []node.PodView {
	started := metav1.NewTime(time.Now().Add(-90 * time.Minute))
	status := corev1.PodStatus{
		Phase: corev1.PodPending, StartTime: &started, PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}},
		Conditions:            []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}},
		InitContainerStatuses: []corev1.ContainerStatus{{Name: "init", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "app", RestartCount: 3,
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 7, Reason: "Error"}},
		}},
	}
	return []node.PodView{
		{UID: "uid-old", Namespace: "default", Name: "web", Phase: lifecycle.Stopping, Leaving: true},
		{UID: "uid-web", Namespace: "default", Name: "web", Source: "file", Phase: lifecycle.Running, Status: status},
	}
}

func (agent) Trace(uid string) (podactor.Trace, bool, error) {
	return recorded(), uid == "uid-web", nil
}

type nothing struct{ agent }

func (nothing) Pods() []node.PodView { return nil }

// serving is a real server on a socket, with the routes that the kubelet adds.
func serving(t *testing.T, a server.Agent) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), socketName)
	events := server.NewEvents(8)
	if len(a.Pods()) > 0 {
		events.PodEvent(node.PodEvent{UID: "uid-web", Namespace: "default", Name: "web", Event: lifecycle.Event{
			Type: lifecycle.EventWarning, Reason: "BackOff", Message: "Back-off\nrestarting", Container: "app",
		}})
		events.Add(server.Event{Time: time.Now(), Type: lifecycle.EventWarning, Reason: "InvalidManifest", Message: "bad", Location: "/m/bad.yaml"})
	}
	answer := func(pattern, body string) server.Route {
		return server.Route{Pattern: pattern, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })}
	}
	srv, err := server.New(server.Config{Socket: socket}, a, nil, events.Route(),
		answer("GET /debug/parts", `["runtime-client","node"]`),
		answer("GET /debug/hooks", `{"Sources":["file","http"],"Mutators":null,"SandboxMutators":["gpu"],"Hooks":["log-links","audit"]}`),
		answer("GET /debug/routes", `[{"path":"/metrics","subresources":["metrics"],"readOnly":true},{"method":"GET","path":"/pods","subresources":["pods","proxy"]}]`),
		answer("GET /debug/graph", "digraph {}\n"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 2000 {
		if _, err := newClient(socket).get(ctx, "/healthz"); err == nil {
			return socket
		}
		<-tick.C
	}
	t.Fatal("the server does not answer")
	return ""
}

func nodectl(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// prints runs a command that must succeed and compares what it prints.
func prints(t *testing.T, want string, args ...string) {
	t.Helper()
	code, stdout, stderr := nodectl(t, args...)
	if code != 0 || stderr != "" || strings.TrimSpace(stdout) != strings.TrimSpace(want) {
		t.Errorf("nodectl %v: exit code %d, %s\n%s\nwant\n%s", args, code, stderr, stdout, want)
	}
}

func TestPods(t *testing.T) {
	socket := "--socket=" + serving(t, agent{})
	prints(t, `
POD          MACHINE             PHASE    READY  RESTARTS  AGE  IP        WAITING
default/web  Stopping (leaving)  -        0/0    0         -    -         -
default/web  Running             Pending  0/1    3         90m  10.0.0.1  app: CrashLoopBackOff
`, "pods", socket)
	_, stdout, _ := nodectl(t, "pods", "-o", "json", socket)
	var lines []server.PodLine
	if err := json.Unmarshal([]byte(stdout), &lines); err != nil || len(lines) != 2 || lines[1].Restarts != 3 {
		t.Errorf("%v: %s", err, stdout)
	}
	prints(t, "The agent has no pods.", "pods", "--root-dir="+filepath.Dir(serving(t, nothing{})))
}

// A name means the pod that is not leaving.
func TestPod(t *testing.T) {
	socket := "--socket=" + serving(t, agent{})
	for _, which := range []string{"uid-web", "default/web"} {
		prints(t, `
Pod      default/web
UID      uid-web
Source   file
Machine  Running
Phase    Pending
IPs      10.0.0.1
Ready    False ContainersNotReady

CONTAINER    STATE                     READY  RESTARTS  LAST END
init (init)  ended with 0 Completed    false  0         -
app          waiting CrashLoopBackOff  false  3         ended with 7 Error

Decisions, oldest first:
`+localClock(0)+`
  saw      a pod to run
  saw      the runtime was read
  saw      the mounts were read
  planned  Admit
  planned  status Pending; app waiting ContainerCreating
`+localClock(1)+`
  saw      admission: Admit
  planned  RunHooksPrepare
`+localClock(2)+`
  saw      the machine is Preparing
  saw      the hooks are prepared
  planned  EnsureCgroup
  planned  Pull app web:1
`+localClock(3)+`
  saw      the cgroup is made
  saw      image/app failed (2 in a row): ErrImagePull: no route
  planned  RunSandbox
  planned  event app Failed: Failed to pull image "web:1": no route
  planned  event app Failed: Error: ErrImagePull
  planned  event app BackOff: Back-off pulling image "web:1"
  planned  event app Failed: Error: ImagePullBackOff
  planned  status Pending; app waiting ImagePullBackOff
  planned  wake in 1m0s`, "pod", which, socket)
	}
}

// localClock is when the nth decision was made, as the user's clock has it.
func localClock(n int) string {
	return now.Add(time.Duration(n) * 1500 * time.Millisecond).Local().Format(clock)
}

func TestPodsThatAreNotThere(t *testing.T) {
	socket := "--socket=" + serving(t, agent{})
	for which, want := range map[string]string{
		"web":        "no pod web; did you mean default/web (UID uid-old)?",
		"uid-w":      "no pod uid-w; did you mean default/web (UID uid-web)?",
		"kube/other": "no pod kube/other; say its UID or NAMESPACE/NAME, nodectl pods lists the names, with -o json also the UIDs",
	} {
		if code, _, stderr := nodectl(t, "pod", which, socket); code != 1 || strings.TrimSpace(stderr) != "nodectl: "+want {
			t.Errorf("%s: exit code %d, %s", which, code, stderr)
		}
	}
}

func TestOthers(t *testing.T) {
	socket := "--socket=" + serving(t, agent{})
	prints(t, "runtime-client\nnode", "parts", socket)
	prints(t, "digraph {}", "graph", socket)
	prints(t, `
METHOD  PATH      OPENED BY                  READ-ONLY PORT
all     /metrics  nodes/metrics              too
GET     /pods     nodes/pods or nodes/proxy  -`, "routes", socket)
	prints(t, `
GROUP             IN THE ORDER OF THE CALLS
sources           file, http
mutators          -
sandbox mutators  gpu
hooks             log-links, audit`, "hooks", socket)
	prints(t, `
AGE  TYPE     REASON           ABOUT            MESSAGE
0s   Warning  BackOff          default/web app  Back-off restarting
0s   Warning  InvalidManifest  /m/bad.yaml      bad`, "events", socket)
	prints(t, `
AGE  TYPE     REASON   ABOUT            MESSAGE
0s   Warning  BackOff  default/web app  Back-off restarting`, "events", "default/web", socket)
	prints(t, "No events.", "events", "--socket="+serving(t, nothing{}))
	_, stdout, _ := nodectl(t, "events", "uid-web", "-o", "json", socket)
	var events []server.Event
	if err := json.Unmarshal([]byte(stdout), &events); err != nil || len(events) != 1 || events[0].Reason != "BackOff" {
		t.Errorf("%v: %s", err, stdout)
	}
}

// What -o json prints is what replay reads, and it comes out the same.
func TestReplay(t *testing.T) {
	socket := "--socket=" + serving(t, agent{})
	code, stdout, stderr := nodectl(t, "pod", "uid-web", "-o", "json", socket)
	if code != 0 {
		t.Fatal(stderr)
	}
	file := write(t, stdout)
	prints(t, `
  1  03:04:05.000  same
  2  03:04:06.500  same
  3  03:04:08.000  same
  4  03:04:09.500  same
All 4 plans for default/web are what was recorded.`, "replay", file)

	// As if recorded by a machine that pulls another image, dreams, and says nothing.
	trace := recorded()
	trace.Entries[2].Plan.Do[1].Image = "web:2"
	trace.Entries[3].Plan.Events, trace.Entries[3].Plan.Do = nil, append(trace.Entries[3].Plan.Do, lifecycle.Action{Kind: "Dream"})
	data, err := json.Marshal(trace)
	if err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr = nodectl(t, "replay", write(t, string(data)))
	if code != 1 || strings.TrimSpace(stderr) != "nodectl: 2 of 4 plans for default/web are not what was recorded" {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	for _, want := range []string{
		"  2  03:04:06.500  same\n",
		"  3  03:04:08.000  DIFFERS\n     Do[1].Image: recorded web:2, now web:1\n",
		"     Do[1].Kind: recorded Dream, now nothing\n",
		"     Events[0].Reason: recorded nothing, now Failed\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhatIsNoTrace(t *testing.T) {
	for text, want := range map[string]string{
		"hello":         "not a trace",
		`{"version":9}`: "a trace of version 9, but this nodectl replays version 1: use the nodectl that came with the agent",
		`{"version":1}`: "a trace without decisions",
		`{"version":1,"entries":[{"input":{"Weather":"fine"}}]}`: `json: unknown field "Weather": use the nodectl that came with the agent`,
	} {
		if code, _, stderr := nodectl(t, "replay", write(t, text)); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %s", text, code, stderr)
		}
	}
}

func TestNoAgent(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, "left.sock")
	l, err := net.Listen("unix", left) //nolint:noctx // a test's listener
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	for socket, want := range map[string]string{
		filepath.Join(dir, "s.sock"): "is the agent running?",
		left:                         "the agent that made the socket is gone",
	} {
		if code, _, stderr := nodectl(t, "pods", "--socket="+socket); code != 1 || !strings.Contains(stderr, want) || !strings.Contains(stderr, socket) {
			t.Errorf("exit code %d, %s; want %s", code, stderr, want)
		}
	}
	err = newClient("/x").explain(&os.PathError{Op: "dial", Path: "/x", Err: os.ErrPermission})
	if !strings.Contains(err.Error(), "run nodectl as root") {
		t.Errorf("got %v", err)
	}
	if code, _, stderr := nodectl(t, "pods", "-o", "yaml"); code != 1 || !strings.Contains(stderr, `--output must be "json"`) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// changes has a word for everything that an input may newly hold.
func TestChanges(t *testing.T) {
	yes := true
	before := lifecycle.Input{Want: lifecycle.Want{UID: "u", Pod: &corev1.Pod{}, Held: true}}
	before.Seen = lifecycle.Seen{Looked: true, Mounted: map[string]bool{"old": true}, NetworkReady: true}
	before.Seen.Runtime = runtime.Pod{
		Sandboxes:  []runtime.Sandbox{{ID: "s1", Ready: true}, {ID: "s0"}},
		Containers: []runtime.Container{{ID: "c1", Name: "app", State: runtime.ContainerRunning}, {ID: "c0", Name: "app"}},
	}
	after := lifecycle.Input{Mem: lifecycle.Memory{Phase: lifecycle.Stopping}, Want: lifecycle.Want{UID: "u",
		Pod: &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}}, Stop: &lifecycle.Stop{Reason: lifecycle.StopEvicted, Grace: time.Minute, Message: "low"}}}
	after.Seen = lifecycle.Seen{
		Looked: true, VolumesLooked: true, Prepared: true, Cgroup: true, StoppingDone: true, CgroupGone: true, CleanedUp: true, DirsGone: true,
		Mounted: map[string]bool{"new": true}, Images: map[string]lifecycle.Image{"app": {Ref: "r"}},
		Probes:    map[string]lifecycle.Probe{"app": {Ready: &yes}},
		PostStart: map[string]lifecycle.PostStart{"c1": {Done: true, Failed: true, Message: "no"}},
		Admission: lifecycle.Admission{Verdict: lifecycle.VerdictReject, Reason: "OutOfcpu"},
		Runtime: runtime.Pod{
			Sandboxes:  []runtime.Sandbox{{ID: "s1"}},
			Containers: []runtime.Container{{ID: "c1", Name: "app", State: runtime.ContainerExited, ExitCode: 3, Reason: "Error", StartedAt: now, FinishedAt: now.Add(time.Second)}},
		},
	}
	want := `the machine is Stopping
a new spec
the older pod is gone
a stop: Evicted within 1m0s low
the mounts were read
network ready: false
admission: Reject OutOfcpu
the hooks are prepared
the cgroup is made
the hooks know of the stop
the cgroup is gone
the hooks have cleaned up
the pod's directories are gone
volume new is mounted
volume old is unmounted
image of app: r
probes of app: started unknown, ready true, unhealthy false
postStart of c1: failed true no
sandbox s1 (attempt 0) ready: false
sandbox s0 is gone
container app c1 (attempt 0) exited with 3 Error after 1s
container app c0 is gone`
	if got := strings.Join(changes(before, after), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := changes(after, after); len(got) != 0 {
		t.Errorf("nothing changed, but: %q", got)
	}
	if got := changes(lifecycle.Input{}, lifecycle.Input{Want: lifecycle.Want{UID: "u", Held: true}}); strings.Join(got, "; ") != "a pod that no source names; an older pod of that name or UID is not gone yet" {
		t.Errorf("an orphan: %q", got)
	}
}

func TestDescribe(t *testing.T) {
	a := lifecycle.Action{Kind: lifecycle.StopContainer, Container: "app", ContainerID: "c1", Grace: 30 * time.Second, Reason: "Killing", Message: "Stopping\ncontainer app"}
	if got := describe(a); got != "StopContainer app c1 within 30s (Killing Stopping container app)" {
		t.Error(got)
	}
	if got := describe(lifecycle.Action{Kind: lifecycle.RunSandbox, Attempt: 2}); got != "RunSandbox attempt 2" {
		t.Error(got)
	}
}
