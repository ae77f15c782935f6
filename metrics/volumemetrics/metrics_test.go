package volumemetrics

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"nodekit.dev/metrics"
	"nodekit.dev/metrics/internal/metricstest"
)

func TestTriesAndTheWhole(t *testing.T) {
	m := New()
	now := time.Unix(1000, 0)
	op := Operation{Kind: "mount", Plugin: "kubernetes.io/secret", UID: "u", Volume: "v", Took: time.Second, Err: errors.New("away")}
	m.done(op, now)
	m.done(op, now.Add(10*time.Second))
	op.Err = nil
	m.done(op, now.Add(20*time.Second)) // 21 s after the first try began
	op.Kind = "unmount"
	m.done(op, now.Add(30*time.Second))
	metricstest.Want(t, m.Collectors(),
		`storage_operation_duration_seconds_count{migrated="false",operation_name="volume_mount",status="fail-unknown",volume_plugin="kubernetes.io/secret"} 2`,
		`storage_operation_duration_seconds_count{migrated="false",operation_name="volume_mount",status="success",volume_plugin="kubernetes.io/secret"} 1`,
		`volume_operation_total_seconds_sum{operation_name="volume_mount",plugin_name="kubernetes.io/secret"} 21`,
		`volume_operation_total_seconds_sum{operation_name="volume_unmount",plugin_name="kubernetes.io/secret"} 1`,
		`volume_operation_total_seconds_bucket{operation_name="volume_mount",plugin_name="kubernetes.io/secret",le="25"} 1`,
	)
}

// What never worked is forgotten with the pod.
func TestUnmountForgets(t *testing.T) {
	m := New()
	now := time.Unix(1000, 0)
	m.done(Operation{Kind: "mount", UID: "u", Volume: "v", Err: errors.New("never")}, now)
	m.done(Operation{Kind: "refresh", UID: "u", Volume: "v", Err: errors.New("never")}, now)
	m.done(Operation{Kind: "unmount", UID: "u", Volume: "v"}, now)
	if len(m.begun) != 0 {
		t.Errorf("remembered: %v", m.begun)
	}
}

func Example() {
	m := New()
	all := metrics.New()
	if err := all.Add(m.Collectors()...); err != nil {
		fmt.Println(err)
		return
	}
	m.Done(Operation{Kind: "mount", Plugin: "kubernetes.io/empty-dir", UID: "u", Volume: "scratch", Took: 20 * time.Millisecond})
	families, err := all.Gather()
	for _, f := range families {
		fmt.Println(f.GetName())
	}
	fmt.Println(err)
	// Output:
	// storage_operation_duration_seconds
	// volume_operation_total_seconds
	// <nil>
}
