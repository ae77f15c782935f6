package wire

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/resources/userns"
	"nodekit.dev/runtime"
)

func TestUserNamespaces(t *testing.T) {
	ranges, err := userns.New(userns.Config{PodsDir: t.TempDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	u := UserNamespaces(ranges)
	var first runtime.UserNamespace
	for _, uid := range []string{"a", "a", "b"} {
		got, err := u.UserNamespace(t.Context(), node.UserNamespaceRequest{UID: uid})
		if err != nil || len(got.Namespace.UIDs) != 1 || got.Namespace.UIDs[0] != got.Namespace.GIDs[0] || got.Namespace.UIDs[0].ContainerID != 0 {
			t.Fatalf("%+v, %v", got, err)
		}
		switch {
		case first.UIDs == nil:
			first = got.Namespace
		case (uid == "a") != (got.Namespace.UIDs[0] == first.UIDs[0]):
			t.Errorf("%s has %+v, a had %+v", uid, got.Namespace, first)
		}
	}
	if err := u.Release(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if got, err := u.UserNamespace(t.Context(), node.UserNamespaceRequest{UID: "c"}); err != nil || got.Namespace.UIDs[0] != first.UIDs[0] {
		t.Errorf("c has %+v, %v; want what a gave back", got, err)
	}
}

func TestAdmissionNodes(t *testing.T) {
	away := errors.New("no route")
	var cached error
	nodes := AdmissionNodes(
		func(context.Context) (*corev1.Node, error) {
			return &corev1.Node{Spec: corev1.NodeSpec{PodCIDR: "cached"}}, cached
		},
		func(context.Context) (*corev1.Node, error) { return nil, away },
		func() *corev1.Node { return &corev1.Node{Spec: corev1.NodeSpec{PodCIDR: "initial"}} },
	)
	if n, known, err := nodes.Node(t.Context()); n.Spec.PodCIDR != "cached" || !known || err != nil {
		t.Errorf("%v %v %v", n, known, err)
	}
	cached = away
	if n, known, err := nodes.Node(t.Context()); n.Spec.PodCIDR != "initial" || known || err != nil {
		t.Errorf("with the API server away: %v %v %v", n, known, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := nodes.Node(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context ended: %v", err)
	}
	if _, err := nodes.Fresh(t.Context()); !errors.Is(err, away) {
		t.Errorf("fresh: %v", err)
	}
}
