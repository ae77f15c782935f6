package admission

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
)

func withPort(uid string, port int32, edit ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: uid, UID: types.UID(uid)}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Ports: []corev1.ContainerPort{{ContainerPort: 1, HostPort: port}}}}
	for _, e := range edit {
		e(p)
	}
	return p
}

func view(p *corev1.Pod, phase lifecycle.Phase, edit ...func(*node.PodView)) node.PodView {
	v := node.PodView{
		UID: string(p.UID), Namespace: p.Namespace, Name: p.Name, Pod: p, Phase: phase, Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, e := range edit {
		e(&v)
	}
	return v
}

func leaving(v *node.PodView)  { v.Leaving = true }
func released(v *node.PodView) { v.Released = true }
func unseen(v *node.PodView)   { v.Status = corev1.PodStatus{} }
func running(v *node.PodView) {
	v.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
}

func created(hour int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC))
	}
}

func TestPortsDecision(t *testing.T) {
	const yes, no, wait = lifecycle.VerdictAdmit, lifecycle.VerdictReject, lifecycle.VerdictLater
	other, older, younger := withPort("m", 80), withPort("a", 80), withPort("z", 80)
	me := withPort("n", 80)
	for name, tc := range map[string]struct {
		self    []node.PodView
		others  []node.PodView
		granted string
		want    lifecycle.Verdict
	}{
		"alone":                       {want: yes},
		"another port":                {others: []node.PodView{view(withPort("m", 81), lifecycle.Running)}, want: yes},
		"taken":                       {others: []node.PodView{view(other, lifecycle.Running)}, want: no},
		"taken by one that prepares":  {others: []node.PodView{view(other, lifecycle.Preparing)}, want: no},
		"granted a moment ago":        {others: []node.PodView{view(younger, lifecycle.Queued)}, granted: "z", want: no},
		"runs since before the agent": {others: []node.PodView{view(younger, lifecycle.Queued, running)}, want: no},
		"holder is leaving":           {others: []node.PodView{view(other, lifecycle.Running, leaving)}, want: wait},
		"holder is stopping":          {others: []node.PodView{view(other, lifecycle.Stopping)}, want: wait},
		"holder's sandbox is there":   {others: []node.PodView{view(other, lifecycle.Cleaning)}, want: wait},
		"holder has let go":           {others: []node.PodView{view(other, lifecycle.Cleaning, released)}, want: yes},
		"holder has finished":         {others: []node.PodView{view(other, lifecycle.Finished)}, want: yes},
		"an older one undecided":      {others: []node.PodView{view(older, lifecycle.Queued)}, want: wait},
		"a younger one undecided":     {others: []node.PodView{view(younger, lifecycle.Queued)}, want: yes},
		"one nobody looked at yet":    {others: []node.PodView{view(younger, lifecycle.Queued, unseen)}, want: wait},
		"an older one that only goes": {others: []node.PodView{view(older, lifecycle.Queued, leaving)}, want: yes},
		"an orphan":                   {others: []node.PodView{{UID: "o", Phase: lifecycle.Running}}, want: yes},
		"no outranks later": {
			others: []node.PodView{view(older, lifecycle.Queued), view(other, lifecycle.Running), view(withPort("b", 80), lifecycle.Stopping)}, want: no,
		},
		"runs itself": {
			self: []node.PodView{view(me, lifecycle.Queued, running)}, others: []node.PodView{view(other, lifecycle.Running)}, want: yes,
		},
		"waits itself": {
			self: []node.PodView{view(me, lifecycle.Queued)}, others: []node.PodView{view(other, lifecycle.Running)}, want: no,
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			got := decide(portsInput{
				now: now, pod: me, pods: append(tc.others, tc.self...), granted: map[string]bool{tc.granted: tc.granted != ""},
			})
			if got.Verdict != tc.want || got.StopsRunning {
				t.Errorf("%+v, want %s", got, tc.want)
			}
			if tc.want == no && (got.Reason != "NodePorts" || got.Message != "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports") {
				t.Errorf("%s: %s", got.Reason, got.Message)
			}
			if tc.want == wait && (got.Reason != "NodePorts" || !got.RetryAt.After(now)) {
				t.Errorf("later: %+v", got)
			}
		})
	}
}

func TestFirst(t *testing.T) {
	ordered := []*corev1.Pod{
		withPort("static-a", 1), withPort("static-b", 1), withPort("x", 1, created(1)), withPort("a", 1, created(2)),
		withPort("a", 1, created(2), func(p *corev1.Pod) { p.UID = "b" }),
	}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := first(a, b); got != (i < j) {
				t.Errorf("first(%d, %d) = %v", i, j, got)
			}
		}
	}
}

func TestClash(t *testing.T) {
	port := func(ip string, protocol corev1.Protocol, number int32) []hostPort {
		return hostPorts(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Ports: []corev1.ContainerPort{{HostIP: ip, Protocol: protocol, HostPort: number}},
		}}}})
	}
	for name, tc := range map[string]struct {
		a, b []hostPort
		want bool
	}{
		"same":                {port("", "TCP", 80), port("", "TCP", 80), true},
		"TCP is meant":        {port("", "", 80), port("", "TCP", 80), true},
		"other protocol":      {port("", "UDP", 80), port("", "TCP", 80), false},
		"other port":          {port("", "TCP", 81), port("", "TCP", 80), false},
		"two addresses":       {port("10.0.0.1", "TCP", 80), port("10.0.0.2", "TCP", 80), false},
		"one address":         {port("10.0.0.1", "TCP", 80), port("10.0.0.1", "TCP", 80), true},
		"all and one":         {port("0.0.0.0", "TCP", 80), port("10.0.0.2", "TCP", 80), true},
		"one and all":         {port("10.0.0.1", "TCP", 80), port("", "TCP", 80), true},
		"no host port at all": {port("", "TCP", 0), port("", "TCP", 0), false},
	} {
		if got := clash(tc.a, tc.b); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestHostPortsOfWhatStays: an init container that ends holds no port.
func TestHostPortsOfWhatStays(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	ports := []corev1.ContainerPort{{HostPort: 1}}
	p := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Ports: ports}, {Ports: []corev1.ContainerPort{{HostPort: 2}}, RestartPolicy: &always}},
		Containers:     []corev1.Container{{Ports: []corev1.ContainerPort{{HostPort: 3}, {ContainerPort: 4}}}},
	}}
	got := hostPorts(p)
	if len(got) != 2 || got[0].port != 2 || got[1].port != 3 {
		t.Errorf("%+v", got)
	}
}

// table is a Pods.
type table []node.PodView

func (l table) Pods() []node.PodView { return l }

// TestGrantsAreForgotten: what was let through is kept as long as it is there.
func TestGrantsAreForgotten(t *testing.T) {
	ask := func(a *ports, p *corev1.Pod) lifecycle.Verdict {
		got, err := a.Admit(t.Context(), node.AdmitRequest{Pod: p})
		if err != nil {
			t.Fatal(err)
		}
		return got.Verdict
	}
	var pods table
	for i := range 100 {
		pods = append(pods, view(withPort(strconv.Itoa(i), int32(1000+i)), lifecycle.Queued))
	}
	a := newPorts(&pods)
	for _, v := range pods {
		if got := ask(a, v.Pod); got != lifecycle.VerdictAdmit {
			t.Fatalf("pod %s: %s", v.UID, got)
		}
	}
	if len(a.granted) != 100 {
		t.Errorf("%d are kept", len(a.granted))
	}
	next := withPort("next", 1000)
	if got := ask(a, next); got != lifecycle.VerdictReject {
		t.Errorf("a port that was granted: %s", got)
	}
	pods = nil
	if got := ask(a, next); got != lifecycle.VerdictAdmit || len(a.granted) != 1 {
		t.Errorf("all are gone: %s, %d are kept", got, len(a.granted))
	}
}
