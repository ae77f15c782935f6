package register

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	kubeletapis "k8s.io/kubelet/pkg/apis"
)

// CheckLabels refuses labels that a node may not give itself, in the stock
// kubelet's words: those of kubernetes.io and k8s.io beyond a few. Allow lets
// further ones through; nil: none.
func CheckLabels(labels map[string]string, allow func(key string) bool) error {
	var unknown, invalid []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		value := labels[key]
		if ofKubernetes(key) && !kubeletapis.IsKubeletLabel(key) && (allow == nil || !allow(key)) {
			unknown = append(unknown, key)
		}
		for text, problems := range map[string][]string{key: validation.IsQualifiedName(key), value: validation.IsValidLabelValue(value)} {
			if len(problems) > 0 {
				invalid = append(invalid, fmt.Sprintf("'%s' - %s", text, strings.Join(problems, ", ")))
			}
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: %v\n"+
			"--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix (%s) or be in the specifically allowed set (%s)",
			unknown, strings.Join(kubeletapis.KubeletLabelNamespaces(), ", "), strings.Join(kubeletapis.KubeletLabels(), ", "))
	}
	if len(invalid) > 0 {
		slices.Sort(invalid)
		return fmt.Errorf("invalid node labels: %s", strings.Join(invalid, "; "))
	}
	return nil
}

func ofKubernetes(key string) bool {
	namespace, _, has := strings.Cut(key, "/")
	if !has {
		return false
	}
	for _, ours := range []string{"kubernetes.io", "k8s.io"} {
		if namespace == ours || strings.HasSuffix(namespace, "."+ours) {
			return true
		}
	}
	return false
}
