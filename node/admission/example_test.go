package admission_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/admission"
)

// tainted is a node that is being emptied.
type tainted struct{}

func (tainted) Node(context.Context) (*corev1.Node, bool, error) {
	n := &corev1.Node{}
	n.Spec.Taints = []corev1.Taint{{Key: "example.com/repair", Effect: corev1.TaintEffectNoExecute}}
	return n, true, nil
}

func (t tainted) Fresh(ctx context.Context) (*corev1.Node, error) {
	n, _, err := t.Node(ctx)
	return n, err
}

type nobody struct{}

func (nobody) Pods() []node.PodView { return nil }

func Example() {
	admitters, err := admission.New(admission.Config{}, tainted{}, nobody{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range admitters {
		verdict, err := a.Value.Admit(context.Background(), node.AdmitRequest{Pod: &corev1.Pod{}})
		fmt.Println(a.Name, verdict.Verdict, verdict.Reason, err)
	}
	// Output:
	// os Admit  <nil>
	// node-affinity Admit  <nil>
	// node-name Admit  <nil>
	// node-ports Admit  <nil>
	// taints Reject TaintToleration <nil>
}
