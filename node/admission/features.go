package admission

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
)

// Features is what the node tells the scheduler that it can do, beyond what
// every node can (status.declaredFeatures).
type Features struct {
	// Version is the kubelet's, such as "v1.37.2". Empty: nothing is asked.
	Version string
	// Declared are the names.
	Declared []string
}

// features refuses pods that need a feature which the node has not declared.
type features struct {
	version  *version.Version
	declared []string
}

func newFeatures(f Features) (features, error) {
	v, err := version.ParseSemantic(f.Version)
	if err != nil {
		return features{}, fmt.Errorf("admission: version %q: %w", f.Version, err)
	}
	return features{version: v, declared: f.Declared}, nil
}

func (a features) Admit(_ context.Context, req node.AdmitRequest) (lifecycle.Admission, error) {
	all := nodedeclaredfeatures.DefaultFramework
	needs, err := all.InferForPodScheduling(&nodedeclaredfeatures.PodInfo{Spec: &req.Pod.Spec, Status: &req.Pod.Status}, a.version)
	if err != nil {
		return unsupported("Failed to infer pod's feature requirements: " + err.Error()), nil
	}
	if needs.IsEmpty() {
		return admit(), nil
	}
	has := &corev1.Node{Status: corev1.NodeStatus{DeclaredFeatures: a.declared}}
	found, err := all.MatchNode(needs, has)
	switch {
	case err != nil:
		return unsupported("Failed to match pod's feature requirements against the node: " + err.Error()), nil
	case !found.IsMatch:
		return unsupported("Pod requires node features that are not available: " + strings.Join(found.UnsatisfiedRequirements, ", ")), nil
	}
	return admit(), nil
}

func unsupported(message string) lifecycle.Admission {
	return lifecycle.Admission{Verdict: lifecycle.VerdictReject, Reason: "PodFeatureUnsupported", Message: message}
}
