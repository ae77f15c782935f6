package volume

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// OverLimit says whether an emptyDir volume of the pod holds more than its
// sizeLimit, for who measured it, and in which words its pod is evicted: those
// of the stock kubelet (the reason is Evicted). A volume without a limit, or of
// another kind, is never over it.
func OverLimit(pod *corev1.Pod, volume string, usedBytes int64) (message string, over bool) {
	for _, v := range pod.Spec.Volumes {
		if v.Name != volume || v.EmptyDir == nil {
			continue
		}
		limit := v.EmptyDir.SizeLimit
		if limit == nil || limit.Sign() <= 0 || resource.NewQuantity(usedBytes, resource.BinarySI).Cmp(*limit) <= 0 {
			return "", false
		}
		return fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, limit.String()), true
	}
	return "", false
}
