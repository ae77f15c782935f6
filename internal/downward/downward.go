// Package downward reads what the downward API shows of a pod: its metadata and
// the resources of its containers, as text. It is pure; volumes and environment
// variables share it.
//
//	text, err := downward.Field(pod, "metadata.labels['app']")
//	text, err = downward.Resource(container, selector, allocatable)
package downward

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Field is the text of one field of the pod's metadata. Labels and annotations
// as a whole are lines of key="value", sorted. Errors read as the stock
// kubelet's.
func Field(pod *corev1.Pod, path string) (string, error) {
	if field, key, ok := subscript(path); ok {
		return mapEntry(pod, path, field, key)
	}
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return lines(pod.Labels), nil
	case "metadata.annotations":
		return lines(pod.Annotations), nil
	}
	return "", fmt.Errorf("unsupported fieldPath: %v", path)
}

// mapEntry is one label or annotation; one that is not there is empty.
func mapEntry(pod *corev1.Pod, path, field, key string) (string, error) {
	var from map[string]string
	var problems []string
	switch field {
	case "metadata.labels":
		from, problems = pod.Labels, validation.IsQualifiedName(key)
	case "metadata.annotations":
		from, problems = pod.Annotations, validation.IsQualifiedName(strings.ToLower(key))
	default:
		return "", fmt.Errorf("fieldPath %q does not support subscript", path)
	}
	if len(problems) > 0 {
		return "", fmt.Errorf("invalid key subscript in %s: %s", path, strings.Join(problems, ";"))
	}
	return from[key], nil
}

// subscript takes "FIELD['KEY']" apart.
func subscript(path string) (field, key string, ok bool) {
	inner, ok := strings.CutSuffix(path, "']")
	if !ok {
		return "", "", false
	}
	field, key, ok = strings.Cut(inner, "['")
	return field, key, ok && field != ""
}

func lines(m map[string]string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, key+"="+strconv.Quote(m[key]))
	}
	return strings.Join(out, "\n")
}

// Container finds a main or init container by name.
func Container(pod *corev1.Pod, name string) (*corev1.Container, error) {
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i], nil
			}
		}
	}
	return nil, fmt.Errorf("container %s not found", name)
}

// Resource is a request or limit of the container, divided and rounded up. A
// limit that is not set is what the node can give to pods.
func Resource(c *corev1.Container, ref *corev1.ResourceFieldSelector, allocatable corev1.ResourceList) (string, error) {
	kind, rest, _ := strings.Cut(ref.Resource, ".")
	name := corev1.ResourceName(rest)
	if !known(name) {
		return "", fmt.Errorf("unsupported container resource : %v", ref.Resource)
	}
	var quantity resource.Quantity
	switch kind {
	case "requests":
		quantity = c.Resources.Requests[name]
	case "limits":
		var ok bool
		if quantity, ok = c.Resources.Limits[name]; !ok || quantity.IsZero() {
			quantity = allocatable[name]
		}
	default:
		return "", fmt.Errorf("unsupported container resource : %v", ref.Resource)
	}
	divisor := ref.Divisor
	if divisor.Sign() <= 0 {
		divisor = resource.MustParse("1")
	}
	if name == corev1.ResourceCPU {
		return divideUp(quantity.MilliValue(), divisor.MilliValue()), nil
	}
	return divideUp(quantity.Value(), divisor.Value()), nil
}

func known(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func divideUp(n, by int64) string {
	out := n / by
	if n%by > 0 {
		out++
	}
	return strconv.FormatInt(out, 10)
}
