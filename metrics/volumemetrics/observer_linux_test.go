package volumemetrics_test

import (
	"errors"
	"testing"

	"nodekit.dev/metrics/internal/metricstest"
	"nodekit.dev/metrics/volumemetrics"
	"nodekit.dev/volume/selinux"
)

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
