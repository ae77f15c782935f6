package volumemetrics_test

import (
	"errors"
	"testing"
	"time"

	"nodekit.dev/metrics/internal/metricstest"
	"nodekit.dev/metrics/volumemetrics"
	"nodekit.dev/volume/csi"
	"nodekit.dev/volume/selinux"
	"nodekit.dev/volume/stats"
)

func TestCSIObserver(t *testing.T) {
	m := volumemetrics.New(volumemetrics.Config{})
	m.CSIObserver().Call(csi.Call{Driver: "disk.example", Method: "/csi.v1.Node/NodeStageVolume", Code: "OK", Took: 200 * time.Millisecond})
	metricstest.Want(t, m.Collectors(),
		`csi_operations_seconds_bucket{driver_name="disk.example",grpc_status_code="OK",method_name="/csi.v1.Node/NodeStageVolume",migrated="false",le="0.25"} 1`,
	)
}

func TestBackends(t *testing.T) {
	m := volumemetrics.New(volumemetrics.Config{Backends: func() []volumemetrics.Backend {
		return volumemetrics.Backends(map[string][]stats.BackendCondition{"d": {{Status: "StorageDegraded", Reason: "Slow"}}, "sound": nil})
	}})
	metricstest.Want(t, m.Collectors(), `csi_node_storage_health_status{driver_name="d",reason="Slow",status="StorageDegraded"} 1`)
}

func TestLabelObserver(t *testing.T) {
	m := volumemetrics.New(volumemetrics.Config{})
	tell := m.LabelObserver()
	for _, err := range []error{nil, &selinux.MismatchError{}, &selinux.ConflictError{}, errors.New("unknown")} {
		tell(selinux.Outcome{Plugin: "p", AccessMode: "RWO", Err: err, Refused: err != nil})
	}
	metricstest.Want(t, m.Collectors(),
		`volume_manager_selinux_volumes_admitted_total{access_mode="RWO",volume_plugin="p"} 1`,
		`volume_manager_selinux_pod_context_mismatch_errors_total{access_mode="RWO"} 1`,
		`volume_manager_selinux_volume_context_mismatch_errors_total{access_mode="RWO",volume_plugin="p"} 1`,
		`volume_manager_selinux_container_errors_total{access_mode="RWO"} 1`,
	)
}
