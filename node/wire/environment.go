package wire

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/admission"
	"nodekit.dev/resources/userns"
	"nodekit.dev/runtime"
)

// UserNamespaces gives pods their users from r.
func UserNamespaces(r *userns.Ranges) node.UserNamespaces { return userNamespaces{r} }

type userNamespaces struct{ ranges *userns.Ranges }

func (u userNamespaces) UserNamespace(ctx context.Context, req node.UserNamespaceRequest) (node.UserNamespaceResult, error) {
	ids, err := u.ranges.Range(ctx, req.UID)
	all := []runtime.IDMapping{{HostID: ids.First, Length: ids.Length}}
	return node.UserNamespaceResult{Namespace: runtime.UserNamespace{UIDs: all, GIDs: all}}, err
}

func (u userNamespaces) Release(_ context.Context, uid string) error { return u.ranges.Release(uid) }

// AdmissionNodes tells admission of the node: cached is what a cache has of it,
// fresh asks the API server, and initial is what the agent would register.
func AdmissionNodes(cached, fresh func(context.Context) (*corev1.Node, error), initial func() *corev1.Node) admission.Nodes {
	return admissionNodes{cached: cached, fresh: fresh, initial: initial}
}

type admissionNodes struct {
	cached, fresh func(context.Context) (*corev1.Node, error)
	initial       func() *corev1.Node
}

// Node falls back to what the agent would register: with the API server away,
// static pods are admitted all the same.
func (n admissionNodes) Node(ctx context.Context) (*corev1.Node, bool, error) {
	if known, err := n.cached(ctx); err == nil {
		return known, true, nil
	}
	return n.initial(), false, ctx.Err()
}

func (n admissionNodes) Fresh(ctx context.Context) (*corev1.Node, error) { return n.fresh(ctx) }

// LatePods is the table of pods of a node that is made after its admitters. Set
// Node before the node runs.
type LatePods struct{ Node *node.Node }

// Pods lists the node's pods.
func (l *LatePods) Pods() []node.PodView { return l.Node.Pods() }
