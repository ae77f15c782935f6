package app

import (
	"strings"
	"testing"

	"nodekit.dev/runtime/runtimetest"
)

// TestPodCIDR: the runtime of a node without a cluster hears where its pods' addresses are from.
func TestPodCIDR(t *testing.T) {
	b := newBed(t)
	logs, stop := start(t, b.flags(t, "podCIDR: 10.8.0.0/24\n"))
	await(t, "word of the pod CIDR", func() bool {
		return strings.Contains(logs.String(), `"the runtime knows the pod CIDR" part="pod-cidr" podCIDR="10.8.0.0/24"`)
	})
	if n := b.world.Calls(runtimetest.MethodUpdateRuntimeConfig); n != 1 {
		t.Errorf("told %d times", n)
	}
	if code := stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
