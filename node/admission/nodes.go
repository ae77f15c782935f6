package admission

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
)

// What is wrong, in the words of the scheduler's predicates.
const (
	reasonAffinity  = "NodeAffinity"
	whyAffinity     = "node(s) didn't match Pod's node affinity/selector"
	reasonNodeName  = "NodeName"
	whyNodeName     = "node(s) didn't match the requested node name"
	reasonTaints    = "TaintToleration"
	whyTaints       = "node(s) had taints that the pod didn't tolerate"
	notKnownYet     = "; the labels that the API server has of this node are not known yet"
	notFreshMessage = "; the API server could not be asked for the node's labels: "
)

// osLabel refuses pods that are labelled for another operating system. It looks
// at the pod's label, not at its selector, as the stock kubelet does.
type osLabel struct{ os string }

func (o osLabel) Admit(_ context.Context, req node.AdmitRequest) (lifecycle.Admission, error) {
	if label, ok := req.Pod.Labels[corev1.LabelOSStable]; ok && label != o.os {
		return lifecycle.Admission{
			Verdict: lifecycle.VerdictReject, Reason: "PodOSSelectorNodeLabelDoesNotMatch",
			Message: "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
		}, nil
	}
	return admit(), nil
}

// affinity refuses pods whose nodeSelector or required node affinity this node
// does not fit.
type affinity struct {
	nodes Nodes
	retry time.Duration
}

func (a affinity) Admit(ctx context.Context, req node.AdmitRequest) (lifecycle.Admission, error) {
	if !selects(req.Pod) {
		return admit(), nil
	}
	n, known, err := a.nodes.Node(ctx)
	if err != nil {
		return lifecycle.Admission{}, fmt.Errorf("the node: %w", err)
	}
	no := predicate(reasonAffinity, whyAffinity)
	switch {
	case matches(req.Pod, n):
		return admit(), nil
	case !known:
		return later(reasonAffinity, no.Message+notKnownYet, time.Now().Add(a.retry)), nil
	}
	// The pod may have been placed by a label that has not come here yet.
	if n, err = a.nodes.Fresh(ctx); err != nil {
		return later(reasonAffinity, no.Message+notFreshMessage+err.Error(), time.Now().Add(a.retry)), nil
	}
	if matches(req.Pod, n) {
		return admit(), nil
	}
	return no, nil
}

// selects says whether the pod asks anything of its node.
func selects(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	return len(pod.Spec.NodeSelector) > 0 ||
		a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil
}

// matches takes a selector that is not valid for one that fits nothing.
func matches(pod *corev1.Pod, n *corev1.Node) bool {
	fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(n)
	return fits && err == nil
}

// nodeName refuses pods that are for another node: a source has mixed them up.
type nodeName struct{ name string }

func (a nodeName) Admit(_ context.Context, req node.AdmitRequest) (lifecycle.Admission, error) {
	if want := req.Pod.Spec.NodeName; a.name != "" && want != "" && want != a.name {
		return predicate(reasonNodeName, whyNodeName), nil
	}
	return admit(), nil
}

// taints refuses pods that do not tolerate a taint that would have them evicted.
type taints struct {
	nodes   Nodes
	compare bool
}

func (a taints) Admit(ctx context.Context, req node.AdmitRequest) (lifecycle.Admission, error) {
	if req.Static {
		return admit(), nil
	}
	n, _, err := a.nodes.Node(ctx)
	if err != nil {
		return lifecycle.Admission{}, fmt.Errorf("the node: %w", err)
	}
	if _, found := findTaint(helpers.FindMatchingUntoleratedTaint, n.Spec.Taints, req.Pod.Spec.Tolerations, a.compare); !found {
		return admit(), nil
	}
	no := predicate(reasonTaints, whyTaints)
	no.StopsRunning = true
	return no, nil
}

// findTaint calls find with a logger that logs nothing: it is the zero value of
// a type that is nobody's business here.
func findTaint[L any, F ~func(*corev1.Taint) bool](
	find func(L, []corev1.Taint, []corev1.Toleration, F, bool) (corev1.Taint, bool),
	taints []corev1.Taint, tolerations []corev1.Toleration, compare bool,
) (corev1.Taint, bool) {
	var none L
	return find(none, taints, tolerations, func(t *corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute }, compare)
}
