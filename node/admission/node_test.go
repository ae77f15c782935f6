package admission_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/admission"
	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime/runtimetest"
)

// channel is a Source that sends what the test says.
type channel chan node.SourceUpdate

func (channel) Name() string { return "file" }

func (c channel) Run(ctx context.Context, updates chan<- node.SourceUpdate) error {
	for {
		select {
		case u := <-c:
			updates <- u
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// latePods is the table of a node that is made after its admitters.
type latePods struct{ node *node.Node }

func (l *latePods) Pods() []node.PodView { return l.node.Pods() }

// runNode runs a node with the default admitters on a strict runtime in memory.
func runNode(t *testing.T, b *actortest.Bench, root string, nodes ...admission.Nodes) (n *node.Node, source channel, stop func()) {
	t.Helper()
	pods := &latePods{}
	admitters, err := admission.New(admission.Config{}, append(nodes, nil)[0], pods)
	if err != nil {
		t.Fatal(err)
	}
	source = make(channel)
	cfg := node.DefaultConfig()
	cfg.RootDir = root
	n, err = node.New(cfg, node.Parts{
		Engine: b, Watcher: b, Puller: b, Mounter: b.Mounts, PodDirs: b.Mounts, Specs: actortest.Specs{},
		Sources:     []node.Ordered[node.Source]{{Name: "file", Value: source}},
		StatusSinks: []node.StatusSink{b}, EventSinks: []node.EventSink{b}, Admitters: admitters,
	})
	if err != nil {
		t.Fatal(err)
	}
	pods.node = n
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	synctest.Wait()
	return n, source, func() {
		cancel()
		<-done
	}
}

func onPort(uid string, edit ...func(*corev1.Pod)) *corev1.Pod {
	return actortest.Pod(uid, uid, append(edit, func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	})...)
}

func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// TestPortOfAPodThatGoes: its successor waits for as long as it takes, says so,
// and starts at once when the port is free.
func TestPortOfAPodThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := actortest.New(t, runtimetest.Config{})
		_, source, stop := runNode(t, b, t.TempDir())
		defer stop()
		b.Script("app", runtimetest.Behaviour{TermDelay: 20 * time.Second})
		old, next := onPort("old"), onPort("next")
		source <- node.SourceUpdate{Pods: []*corev1.Pod{old}}
		after(time.Second)
		source <- node.SourceUpdate{Pods: []*corev1.Pod{next}}
		after(15 * time.Second)
		last := b.Last("next")
		i := slices.IndexFunc(last.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == lifecycle.ConditionAdmitted })
		if last.Status.Phase != corev1.PodPending || i < 0 || last.Status.Conditions[i].Reason != "NodePorts" {
			t.Errorf("while the old one goes: %+v", last.Status)
		}
		after(10 * time.Second)
		if b.Running(t, "next") != 1 {
			t.Errorf("after the old one has gone: %+v", b.Last("next").Status)
		}
		source <- node.SourceUpdate{}
		after(time.Minute)
		b.CheckEmpty()
	})
}

// TestPortsOfABurst: of many pods that want one port and come at once, one gets
// it; and it keeps it over a restart of the agent.
func TestPortsOfABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := actortest.New(t, runtimetest.Config{})
		root := t.TempDir()
		_, source, stop := runNode(t, b, root)
		var pods []*corev1.Pod
		for _, uid := range []string{"e", "d", "c", "b", "a"} {
			pods = append(pods, onPort(uid))
		}
		source <- node.SourceUpdate{Pods: pods}
		after(time.Minute)
		check := func(when string) {
			t.Helper()
			for _, p := range pods {
				uid := string(p.UID)
				status := b.Last(uid).Status
				if uid == "a" && b.Running(t, uid) != 1 || uid != "a" && (status.Phase != corev1.PodFailed || status.Reason != "NodePorts") {
					t.Errorf("%s: pod %s is %s %s", when, uid, status.Phase, status.Reason)
				}
			}
		}
		check("after the burst")
		stop()
		slices.Reverse(pods)
		_, source, stop = runNode(t, b, root)
		defer stop()
		// The failed ones are new to this agent: only the one that runs keeps its port.
		source <- node.SourceUpdate{Pods: pods}
		after(time.Minute)
		check("after a restart")
	})
}

// clean is a node without taints.
type clean struct{ tainted }

func (clean) Node(context.Context) (*corev1.Node, bool, error) { return &corev1.Node{}, true, nil }

// TestTaintWhileTheAgentWasAway: a pod that does not tolerate it is ended by the
// agent that comes back (k/k#101218); one that does, and a static one, run on.
func TestTaintWhileTheAgentWasAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := actortest.New(t, runtimetest.Config{})
		root := t.TempDir()
		from := func(source string) func(*corev1.Pod) {
			return func(p *corev1.Pod) { p.Annotations = map[string]string{"kubernetes.io/config.source": source} }
		}
		tolerant := func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }
		pods := []*corev1.Pod{
			actortest.Pod("plain", "plain", from("api")), actortest.Pod("tolerant", "tolerant", from("api"), tolerant),
			actortest.Pod("static", "static", from("file")),
		}
		_, source, stop := runNode(t, b, root, clean{})
		source <- node.SourceUpdate{Pods: pods}
		after(time.Minute)
		stop()
		_, source, stop = runNode(t, b, root, tainted{})
		defer stop()
		source <- node.SourceUpdate{Pods: pods}
		after(time.Minute)
		for uid, want := range map[string]int{"plain": 0, "tolerant": 1, "static": 1} {
			if got := b.Running(t, uid); got != want {
				t.Errorf("%s: %d containers run, want %d", uid, got, want)
			}
		}
		if s := b.Last("plain").Status; s.Phase != corev1.PodFailed || s.Reason != "TaintToleration" {
			t.Errorf("%s %s: %s", s.Phase, s.Reason, s.Message)
		}
	})
}
