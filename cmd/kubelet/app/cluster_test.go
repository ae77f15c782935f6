package app

import (
	"testing"

	"nodekit.dev/cmd/kubelet/config"
	"nodekit.dev/resources"
)

// Hard eviction thresholds are kept from pods, but not with the flag for it;
// what is wrong with them is an error either way.
func TestIgnoreEviction(t *testing.T) {
	for _, ignore := range []bool{false, true} {
		var out resources.Reserved
		kc := &config.KubeletConfiguration{EvictionHard: map[string]string{"memory.available": "100Mi"}}
		if err := reserved(&out, kc, ignore); err != nil || (len(out.Eviction) == 0) != ignore {
			t.Errorf("ignored %v: %+v, %v", ignore, out.Eviction, err)
		}
		kc.EvictionHard["memory.available"] = "much"
		if err := reserved(&out, kc, ignore); err == nil {
			t.Errorf("ignored %v: took a wrong threshold", ignore)
		}
	}
}
