package podspec

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"nodekit.dev/node/podactor"
)

// podField is the text of one field of the pod, by the paths that the downward
// API knows for environment variables.
func (b *Builder) podField(req podactor.ContainerSpecRequest, path string) (string, error) {
	pod := req.Pod
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "spec.nodeName":
		if pod.Spec.NodeName != "" {
			return pod.Spec.NodeName, nil
		}
		return b.cfg.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP":
		return first(b.hostIPs(req.HostIPs)), nil
	case "status.hostIPs":
		return strings.Join(b.hostIPs(req.HostIPs), ","), nil
	case "status.podIP":
		return first(b.podIPs(req)), nil
	case "status.podIPs":
		return strings.Join(b.podIPs(req), ","), nil
	}
	if key, ok := subscript(path, "metadata.labels"); ok {
		return pod.Labels[key], nil
	}
	if key, ok := subscript(path, "metadata.annotations"); ok {
		return pod.Annotations[key], nil
	}
	return "", fmt.Errorf("fieldRef %q: no such field for environment variables", path)
}

// podIPs are the pod's addresses: the node's for host-network pods, of which
// the runtime tells none.
func (b *Builder) podIPs(req podactor.ContainerSpecRequest) []string {
	if len(req.PodIPs) == 0 && req.Pod.Spec.HostNetwork {
		return b.hostIPs(req.HostIPs)
	}
	return req.PodIPs
}

// hostIPs are the node's addresses as the node knows them now.
func (b *Builder) hostIPs(ofRequest []string) []string {
	if len(ofRequest) == 0 {
		return b.cfg.NodeIPs
	}
	return ofRequest
}

// subscript reads the key in "<field>['key']".
func subscript(path, field string) (string, bool) {
	rest, ok := strings.CutPrefix(path, field+"['")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, "']")
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// resourceField is a request or limit of a container, divided and rounded up. A
// limit that is not set is what the node can give.
func (b *Builder) resourceField(pod *corev1.Pod, self *corev1.Container, ref *corev1.ResourceFieldSelector) (string, error) {
	c := self
	if ref.ContainerName != "" {
		var err error
		if c, err = findContainer(pod, ref.ContainerName); err != nil {
			return "", err
		}
	}
	kind, name, _ := strings.Cut(ref.Resource, ".")
	quantity, err := b.resourceQuantity(c, kind, corev1.ResourceName(name))
	if err != nil {
		return "", fmt.Errorf("resourceFieldRef %q: %w", ref.Resource, err)
	}
	divisor := ref.Divisor
	if divisor.Sign() <= 0 {
		divisor = resource.MustParse("1")
	}
	if name == string(corev1.ResourceCPU) {
		return divideUp(quantity.MilliValue(), divisor.MilliValue()), nil
	}
	return divideUp(quantity.Value(), divisor.Value()), nil
}

func (b *Builder) resourceQuantity(c *corev1.Container, kind string, name corev1.ResourceName) (resource.Quantity, error) {
	switch {
	case name == corev1.ResourceCPU, name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage,
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
	default:
		return resource.Quantity{}, fmt.Errorf("no such resource")
	}
	switch kind {
	case "requests":
		return c.Resources.Requests[name], nil
	case "limits":
		if q, ok := c.Resources.Limits[name]; ok && q.Sign() > 0 {
			return q, nil
		}
		q, ok := b.cfg.Allocatable[name]
		if !ok {
			return q, fmt.Errorf("container %s sets no such limit and the node's allocatable amount is not known", c.Name)
		}
		return q, nil
	}
	return resource.Quantity{}, fmt.Errorf("must begin with requests or limits")
}

func divideUp(n, by int64) string {
	out := n / by
	if n%by > 0 {
		out++
	}
	return strconv.FormatInt(out, 10)
}
