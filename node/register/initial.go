package register

import (
	"maps"
	goruntime "runtime"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletapis "k8s.io/kubelet/pkg/apis"

	"nodekit.dev/resources"
)

const (
	// taintUninitialized keeps pods away until a cloud controller has filled the
	// node in.
	taintUninitialized = "node.cloudprovider.kubernetes.io/uninitialized"
	// annotationAttach says that the controller attaches volumes.
	annotationAttach = "volumes.kubernetes.io/controller-managed-attach-detach"
	// annotationNodeIP tells a cloud controller which addresses the operator
	// asked for.
	annotationNodeIP = "alpha.kubernetes.io/provided-node-ip"
)

// stockLabels are what every node has, whatever --node-labels says.
func stockLabels(hostname string) map[string]string {
	return map[string]string{
		corev1.LabelHostname:   hostname,
		corev1.LabelOSStable:   goruntime.GOOS,
		corev1.LabelArchStable: goruntime.GOARCH,
		kubeletapis.LabelOS:    goruntime.GOOS,
		kubeletapis.LabelArch:  goruntime.GOARCH,
	}
}

// initialNode is a new Node but for its status.
func initialNode(cfg Config) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: cfg.NodeName, Labels: stockLabels(cfg.Hostname)},
		Spec:       corev1.NodeSpec{ProviderID: cfg.ProviderID, Taints: slices.Clone(cfg.Taints)},
	}
	maps.Copy(n.Labels, cfg.Labels)
	if cfg.ExternalCloud {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: taintUninitialized, Value: "true", Effect: corev1.TaintEffectNoSchedule})
	}
	if cfg.AttachByController {
		n.Annotations = map[string]string{annotationAttach: "true"}
	}
	return n
}

// reconciledLabels are the labels that an existing Node takes over from a new one.
func reconciledLabels() []string {
	return []string{
		corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion,
		corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
		corev1.LabelInstanceTypeStable, corev1.LabelInstanceType,
		corev1.LabelOSStable, corev1.LabelArchStable, corev1.LabelWindowsBuild,
		kubeletapis.LabelOS, kubeletapis.LabelArch,
	}
}

// reconcile makes a Node that was there before agree with what a new one would
// be: the labels that every node has, who attaches volumes, and huge pages that
// the machine has no longer. Operators' labels and taints stay.
func reconcile(initial, existing *corev1.Node) {
	for _, key := range reconciledLabels() {
		if value, ok := initial.Labels[key]; ok {
			setLabel(existing, key, value)
		}
	}
	if value, ok := initial.Annotations[annotationAttach]; ok {
		setAnnotation(existing, annotationAttach, value)
	} else {
		delete(existing.Annotations, annotationAttach)
	}
	for name := range existing.Status.Capacity {
		if _, has := initial.Status.Capacity[name]; resources.IsHugepages(name) && !has {
			delete(existing.Status.Capacity, name)
			delete(existing.Status.Allocatable, name)
		}
	}
}

// setLabel removes a label whose value is to be empty.
func setLabel(n *corev1.Node, key, value string) {
	if value == "" {
		delete(n.Labels, key)
		return
	}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[key] = value
}

func setAnnotation(n *corev1.Node, key, value string) {
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	n.Annotations[key] = value
}

// keepLabels gives an updated Node its operating system and architecture back.
func keepLabels(n *corev1.Node) {
	setLabel(n, corev1.LabelOSStable, goruntime.GOOS)
	setLabel(n, corev1.LabelArchStable, goruntime.GOARCH)
}
