package volumemetrics_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"nodekit.dev/metrics"
	"nodekit.dev/metrics/internal/metricstest"
	"nodekit.dev/metrics/volumemetrics"
)

func TestOperations(t *testing.T) {
	m := volumemetrics.New(volumemetrics.Config{})
	op := volumemetrics.Operation{Kind: "mount", Plugin: "kubernetes.io/csi:d", Took: time.Second, Err: errors.New("away")}
	m.Done(op)
	m.Done(op)
	op.Err, op.Whole = nil, 21*time.Second
	m.Done(op)
	op.Block = true
	m.Done(op)
	m.Done(volumemetrics.Operation{Kind: "unmount", Plugin: "kubernetes.io/csi:d", Block: true})
	m.Done(volumemetrics.Operation{Kind: "unmount", Plugin: "kubernetes.io/secret", Took: time.Second})
	m.Done(volumemetrics.Operation{Kind: "volume_fs_resize", Plugin: "kubernetes.io/csi:d"})
	each := func(plugin, name, status string, n int) string {
		return fmt.Sprintf(`storage_operation_duration_seconds_count{migrated="false",operation_name="%s",status="%s",volume_plugin="%s"} %d`, name, status, plugin, n)
	}
	metricstest.Want(t, m.Collectors(),
		each("kubernetes.io/csi:d", "volume_mount", "fail-unknown", 2),
		each("kubernetes.io/csi:d", "volume_mount", "success", 1),
		each("kubernetes.io/csi:d", "map_volume", "success", 1),
		each("kubernetes.io/csi:d", "unmap_volume", "success", 1),
		each("kubernetes.io/secret", "volume_unmount", "success", 1),
		each("kubernetes.io/csi:d", "volume_fs_resize", "success", 1),
		`volume_operation_total_seconds_sum{operation_name="overall_volume_mount",plugin_name="kubernetes.io/csi:d"} 21`,
		`volume_operation_total_seconds_count{operation_name="overall_volume_mount",plugin_name="kubernetes.io/csi:d"} 1`,
		`volume_operation_total_seconds_bucket{operation_name="overall_volume_mount",plugin_name="kubernetes.io/csi:d",le="15"} 0`,
		`volume_operation_total_seconds_bucket{operation_name="overall_volume_mount",plugin_name="kubernetes.io/csi:d",le="25"} 1`,
	)
}

func TestCallsAndMeasuring(t *testing.T) {
	m := volumemetrics.New(volumemetrics.Config{})
	m.Called("d", "/csi.v1.Node/NodeStageVolume", "DeadlineExceeded", false, 120*time.Second)
	m.Called("d", "/csi.v1.Node/NodeStageVolume", "OK", true, time.Second)
	m.Measured("du", 30*time.Millisecond)
	metricstest.Want(t, m.Collectors(),
		`csi_operations_seconds_bucket{driver_name="d",grpc_status_code="DeadlineExceeded",method_name="/csi.v1.Node/NodeStageVolume",migrated="false",le="120"} 1`,
		`csi_operations_seconds_count{driver_name="d",grpc_status_code="OK",method_name="/csi.v1.Node/NodeStageVolume",migrated="true"} 1`,
		`kubelet_volume_metric_collection_duration_seconds_bucket{metric_source="du",le="0.025"} 0`,
		`kubelet_volume_metric_collection_duration_seconds_bucket{metric_source="du",le="0.05"} 1`,
		`kubelet_volume_metric_collection_duration_seconds_bucket{metric_source="du",le="10"} 1`,
	)
}

func TestClaims(t *testing.T) {
	list := []volumemetrics.Claim{
		{Namespace: "ns", Name: "a", Capacity: new(int64(100)), Available: new(int64(60)), Used: new(int64(40)), Inodes: new(int64(9)), InodesFree: new(int64(7)), InodesUsed: new(int64(2)), Abnormal: new(bool)},
		{Namespace: "ns", Name: "a", Capacity: new(int64(5))}, // a second pod
		{Namespace: "ns", Name: "device", Capacity: new(int64(200)), Abnormal: new(true)},
	}
	m := volumemetrics.New(volumemetrics.Config{Claims: func() []volumemetrics.Claim { return list }})
	var want []string
	for name, value := range map[string]int{"capacity_bytes": 100, "available_bytes": 60, "used_bytes": 40, "inodes": 9, "inodes_free": 7, "inodes_used": 2, "health_status_abnormal": 0} {
		want = append(want, fmt.Sprintf(`kubelet_volume_stats_%s{namespace="ns",persistentvolumeclaim="a"} %d`, name, value))
	}
	metricstest.Want(t, m.Collectors(), append(want,
		`kubelet_volume_stats_capacity_bytes{namespace="ns",persistentvolumeclaim="device"} 200`,
		`kubelet_volume_stats_health_status_abnormal{namespace="ns",persistentvolumeclaim="device"} 1`)...)
	if text := metricstest.Text(t, m.Collectors()); strings.Contains(text, `used_bytes{namespace="ns",persistentvolumeclaim="device"}`) {
		t.Error("a figure that nobody knows shows")
	}
	list = nil
	if text := metricstest.Text(t, m.Collectors()); strings.Contains(text, "kubelet_volume_stats_") {
		t.Error("figures of volumes that are gone")
	}
}

func TestCensus(t *testing.T) {
	m := volumemetrics.New(volumemetrics.Config{
		Census: func() volumemetrics.Census {
			return volumemetrics.Census{
				Desired: map[string]int{"kubernetes.io/empty-dir": 3}, Mounted: map[string]int{"kubernetes.io/empty-dir": 2},
				Found: 4, FoundErrors: 1, Cleaned: 5, CleanErrors: 6,
			}
		},
		Backends: func() []volumemetrics.Backend {
			return []volumemetrics.Backend{{"d", "StorageUnreachable", "NoPath"}, {"d", "StorageUnreachable", "NoPath"}}
		},
	})
	metricstest.Want(t, m.Collectors(),
		`volume_manager_total_volumes{plugin_name="kubernetes.io/empty-dir",state="desired_state_of_world"} 3`,
		`volume_manager_total_volumes{plugin_name="kubernetes.io/empty-dir",state="actual_state_of_world"} 2`,
		`reconstruct_volume_operations_total 4`, `reconstruct_volume_operations_errors_total 1`,
		`force_cleaned_failed_volume_operations_total 5`, `force_cleaned_failed_volume_operation_errors_total 6`,
		`csi_node_storage_health_status{driver_name="d",reason="NoPath",status="StorageUnreachable"} 1`,
	)
}

func TestLabels(t *testing.T) {
	m := volumemetrics.New(volumemetrics.Config{})
	for _, l := range []volumemetrics.Labeling{
		{Plugin: "p", AccessMode: "RWOP", Outcome: volumemetrics.LabelAdmitted},
		{Plugin: "p", AccessMode: "RWX", Outcome: volumemetrics.LabelTaken, Refused: true},
		{Plugin: "p", AccessMode: "RWX", Outcome: volumemetrics.LabelTaken},
		{Plugin: "p", AccessMode: "RWO", Outcome: volumemetrics.LabelsDiffer, Refused: true},
		{Plugin: "p", AccessMode: "RWO", Outcome: volumemetrics.LabelUnknown},
		{Plugin: "p", AccessMode: "RWO", Outcome: "new"},
	} {
		m.Labeled(l)
	}
	metricstest.Want(t, m.Collectors(),
		`volume_manager_selinux_volumes_admitted_total{access_mode="RWOP",volume_plugin="p"} 1`,
		`volume_manager_selinux_volume_context_mismatch_errors_total{access_mode="RWX",volume_plugin="p"} 1`,
		`volume_manager_selinux_volume_context_mismatch_warnings_total{access_mode="RWX",volume_plugin="p"} 1`,
		`volume_manager_selinux_pod_context_mismatch_errors_total{access_mode="RWO"} 1`,
		`volume_manager_selinux_container_warnings_total{access_mode="RWO"} 1`,
	)
}

func Example() {
	registry := metrics.New()
	m := volumemetrics.New(volumemetrics.Config{})
	if err := registry.Add(m.Collectors()...); err != nil {
		fmt.Println(err)
		return
	}
	m.Done(volumemetrics.Operation{Kind: "mount", Plugin: "kubernetes.io/empty-dir", Took: time.Millisecond, Whole: time.Millisecond})
	families, err := registry.Gather()
	fmt.Println(len(families), err)
	// Output: 2 <nil>
}
