package admission

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
)

// fakeNodes is a Nodes.
type fakeNodes struct {
	last, fresh *corev1.Node
	known       bool
	err         error // of Node
	freshErr    error
}

func (f fakeNodes) Node(context.Context) (*corev1.Node, bool, error) { return f.last, f.known, f.err }
func (f fakeNodes) Fresh(context.Context) (*corev1.Node, error)      { return f.fresh, f.freshErr }

type noPods struct{}

func (noPods) Pods() []node.PodView { return nil }

func thisNode(edit ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"zone": "a"}}}
	for _, e := range edit {
		e(n)
	}
	return n
}

// asked runs all admitters in order, as the pod machine does.
func asked(t *testing.T, cfg Config, nodes Nodes, req node.AdmitRequest) (lifecycle.Admission, error) {
	t.Helper()
	cfg.OS, cfg.NodeName = "linux", "n1"
	admitters, err := New(cfg, nodes, noPods{})
	if err != nil {
		t.Fatal(err)
	}
	sorted, err := node.InOrder("admitter", admitters)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range sorted {
		verdict, err := a.Value.Admit(t.Context(), req)
		if err != nil || verdict.Verdict != lifecycle.VerdictAdmit {
			return verdict, err
		}
	}
	return lifecycle.Admission{Verdict: lifecycle.VerdictAdmit}, nil
}

func pod(edit ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u1"}}
	for _, e := range edit {
		e(p)
	}
	return p
}

func selecting(zone string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": zone} }
}

func required(terms ...corev1.NodeSelectorTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
		}}
	}
}

func named(name string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{
		Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name},
	}}}
}

func tainted(taints ...corev1.Taint) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = taints }
}

func TestAdmission(t *testing.T) {
	const affinity = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
	known := func(edit ...func(*corev1.Node)) fakeNodes {
		return fakeNodes{last: thisNode(edit...), fresh: thisNode(edit...), known: true}
	}
	evicting := corev1.Taint{Key: "k", Value: "5", Effect: corev1.TaintEffectNoExecute}
	untolerated := "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
	for name, tc := range map[string]struct {
		cfg    Config
		nodes  Nodes
		pod    *corev1.Pod
		static bool
		want   string // "VERDICT REASON: MESSAGE"; empty: admitted
	}{
		"plain":      {nodes: known(), pod: pod()},
		"standalone": {pod: pod(selecting("b"))},
		"OS label": {
			nodes: known(), pod: pod(func(p *corev1.Pod) { p.Labels = map[string]string{"kubernetes.io/os": "windows"} }),
			want: "Reject PodOSSelectorNodeLabelDoesNotMatch: Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
		},
		"OS label, standalone": {
			pod:  pod(func(p *corev1.Pod) { p.Labels = map[string]string{"kubernetes.io/os": "windows"} }),
			want: "Reject PodOSSelectorNodeLabelDoesNotMatch: Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
		},
		"OS label of ours": {nodes: known(), pod: pod(func(p *corev1.Pod) { p.Labels = map[string]string{"kubernetes.io/os": "linux"} })},
		"selector":         {nodes: known(), pod: pod(selecting("a"))},
		"other selector":   {nodes: known(), pod: pod(selecting("b")), want: "Reject NodeAffinity: " + affinity},
		"label that has just come": {
			nodes: fakeNodes{last: thisNode(), fresh: thisNode(func(n *corev1.Node) { n.Labels["zone"] = "b" }), known: true}, pod: pod(selecting("b")),
		},
		"node not known yet": {nodes: fakeNodes{last: thisNode()}, pod: pod(selecting("b")), want: "Later NodeAffinity: " + affinity + notKnownYet},
		"not known yet, but fits": {
			nodes: fakeNodes{last: thisNode()}, pod: pod(selecting("a")), static: true,
		},
		"API server away": {
			nodes: fakeNodes{last: thisNode(), known: true, freshErr: errors.New("no route")}, pod: pod(selecting("b")),
			want: "Later NodeAffinity: " + affinity + notFreshMessage + "no route",
		},
		"nothing known at all":                 {nodes: fakeNodes{err: errors.New("no node")}, pod: pod(selecting("a")), want: "error the node: no node"},
		"nothing known, nothing asked, static": {nodes: fakeNodes{err: errors.New("no node")}, pod: pod(), static: true},
		"affinity by name":                     {nodes: known(), pod: pod(required(named("n2"), named("n1")))},
		"affinity to other":                    {nodes: known(), pod: pod(required(named("n2"))), want: "Reject NodeAffinity: " + affinity},
		"affinity to none":                     {nodes: known(), pod: pod(required()), want: "Reject NodeAffinity: " + affinity},
		"affinity not valid": {
			nodes: known(), pod: pod(required(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: "Like"}}})),
			want: "Reject NodeAffinity: " + affinity,
		},
		"preferred affinity": {nodes: known(), pod: pod(func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: named("n2")}},
			}}
		})},
		"our name": {nodes: known(), pod: pod(func(p *corev1.Pod) { p.Spec.NodeName = "n1" })},
		"another's name": {
			pod:  pod(func(p *corev1.Pod) { p.Spec.NodeName = "n2" }),
			want: "Reject NodeName: Predicate NodeName failed: node(s) didn't match the requested node name",
		},
		"taint":         {nodes: known(tainted(evicting)), pod: pod(), want: "Reject TaintToleration: " + untolerated},
		"taint, static": {nodes: known(tainted(evicting)), pod: pod(), static: true},
		"taint that only keeps the scheduler away": {
			nodes: known(tainted(corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule})), pod: pod(),
		},
		"tolerated": {nodes: known(tainted(evicting)), pod: pod(tolerating(corev1.Toleration{Key: "k", Operator: corev1.TolerationOpExists}))},
		"tolerated by number": {
			cfg: Config{CompareTaints: true}, nodes: known(tainted(evicting)),
			pod: pod(tolerating(corev1.Toleration{Key: "k", Operator: corev1.TolerationOpGt, Value: "4"})),
		},
		"tolerated by number, gate off": {
			nodes: known(tainted(evicting)),
			pod:   pod(tolerating(corev1.Toleration{Key: "k", Operator: corev1.TolerationOpGt, Value: "4"})),
			want:  "Reject TaintToleration: " + untolerated,
		},
		"affinity before taints": {
			nodes: known(tainted(evicting)), pod: pod(selecting("b")), want: "Reject NodeAffinity: " + affinity,
		},
		"feature that is there": {
			cfg: Config{Features: Features{Version: "v1.37.2", Declared: []string{"RestartAllContainersOnContainerExits"}}}, pod: pod(restartingAll),
		},
		"feature that is not there": {
			cfg: Config{Features: Features{Version: "v1.37.2"}}, pod: pod(restartingAll),
			want: "Reject PodFeatureUnsupported: Pod requires node features that are not available: RestartAllContainersOnContainerExits",
		},
		"no feature needed":  {cfg: Config{Features: Features{Version: "v1.37.2"}}, pod: pod()},
		"features not asked": {pod: pod(restartingAll)},
		"deleted":            {nodes: known(tainted(evicting)), pod: pod(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} })},
		"succeeded":          {nodes: known(tainted(evicting)), pod: pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })},
		"failed":             {nodes: known(tainted(evicting)), pod: pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })},
		"no pod":             {nodes: known(tainted(evicting))},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := asked(t, tc.cfg, tc.nodes, node.AdmitRequest{Pod: tc.pod, Static: tc.static})
			text := string(got.Verdict) + " " + got.Reason + ": " + got.Message
			switch {
			case err != nil:
				text = "error " + err.Error()
			case got.Verdict == lifecycle.VerdictAdmit:
				text = ""
			case got.Verdict == lifecycle.VerdictLater && got.RetryAt.IsZero():
				t.Error("nobody asks again")
			case got.StopsRunning != (got.Reason == "TaintToleration"):
				t.Errorf("a pod that runs is stopped: %v", got.StopsRunning)
			}
			if text != tc.want {
				t.Errorf("%q, want %q", text, tc.want)
			}
		})
	}
}

func restartingAll(p *corev1.Pod) {
	p.Spec.Containers = []corev1.Container{{RestartPolicyRules: []corev1.ContainerRestartRule{{
		Action: corev1.ContainerRestartRuleActionRestartAllContainers,
	}}}}
}

func tolerating(t corev1.Toleration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{t} }
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	for want, make := range map[string]func() ([]node.Ordered[node.Admitter], error){
		"pods": func() ([]node.Ordered[node.Admitter], error) { return New(Config{}, nil, nil) },
		"version \"one\"": func() ([]node.Ordered[node.Admitter], error) {
			return New(Config{Features: Features{Version: "one"}}, nil, noPods{})
		},
		"Retry": func() ([]node.Ordered[node.Admitter], error) { return New(Config{Retry: -1}, nil, noPods{}) },
	} {
		if _, err := make(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s in it", err, want)
		}
	}
}

// TestOrder is what docs and vendors rely on.
func TestOrder(t *testing.T) {
	all, err := New(Config{Features: Features{Version: "v1.37.2"}}, fakeNodes{}, noPods{})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(all)
	sorted, err := node.InOrder("admitter", all)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range sorted {
		names = append(names, a.Name)
	}
	if want := []string{"os", "node-affinity", "node-name", "node-ports", "taints", "features"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}
