package lifecycle

import (
	"encoding/json"
	"hash/fnv"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/dump"

	"nodekit.dev/runtime"
)

// ContainerHash is the value of the annotation io.kubernetes.container.hash:
// when it differs from the spec's, the container is replaced. It is the stock
// kubelet's (since v1.31 over name and image alone), so that a swap between
// the two restarts nothing.
func ContainerHash(c *corev1.Container) string {
	// Two strings always marshal.
	picked, _ := json.Marshal(struct {
		Image string `json:"image"`
		Name  string `json:"name"`
	}{c.Image, c.Name})
	h := fnv.New32a()
	h.Write([]byte(dump.ForHash(picked))) //nolint:govet,staticcheck // the newer home of ForHash, k8s.io/utils, is no direct require of ours
	return strconv.FormatUint(uint64(h.Sum32()), 16)
}

// changed says that the run was made from another definition. A run without
// the annotation was made by nobody we know and is left alone.
func (c *container) changed(r runtime.Container) bool {
	hash := r.Annotations[runtime.AnnotationContainerHash]
	return c.spec != nil && hash != "" && hash != ContainerHash(c.spec)
}
