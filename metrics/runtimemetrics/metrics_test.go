package runtimemetrics

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"nodekit.dev/metrics"
	"nodekit.dev/metrics/internal/metricstest"
	"nodekit.dev/runtime/images"
)

// The labels are those of the stock kubelet's own client.
func TestOperations(t *testing.T) {
	for method, want := range map[string]string{
		"Version": "version", "RunPodSandbox": "run_podsandbox", "PodSandboxStatus": "podsandbox_status", "ListPodSandbox": "list_podsandbox",
		"CreateContainer": "create_container", "ImageFsInfo": "image_fs_info", "ExecSync": "exec_sync", "PortForward": "port_forward",
		"UpdatePodSandboxResources": "update_podsandbox_resources", "GetContainerEvents": "get_container_events", "ReopenContainerLog": "reopen_container_log",
	} {
		if got := Operation(method); got != want {
			t.Errorf("%s: %s, want %s", method, got, want)
		}
	}
}

func TestCalls(t *testing.T) {
	m := New()
	called := m.Called
	called(Call{Method: "RunPodSandbox", Handler: "kata", Took: 300 * time.Millisecond})
	called(Call{Method: "RunPodSandbox", Took: time.Second, Err: errors.New("no network")})
	called(Call{Method: "StopContainer", Took: time.Second})
	metricstest.Want(t, m.Collectors(),
		`kubelet_runtime_operations_total{operation_type="run_podsandbox"} 2`,
		`kubelet_runtime_operations_errors_total{operation_type="run_podsandbox"} 1`,
		`kubelet_runtime_operations_duration_seconds_bucket{operation_type="stop_container",le="1.220703125"} 1`,
		`kubelet_run_podsandbox_duration_seconds_count{runtime_handler="kata"} 1`,
		`kubelet_run_podsandbox_errors_total{runtime_handler=""} 1`,
	)
}

func TestPulls(t *testing.T) {
	for size, want := range map[uint64]string{
		0: "N/A", 1: "0-10MB", 10 << 20: "0-10MB", 11 << 20: "10MB-100MB", 2 << 30: "1GB-5GB", 45 << 30: "40GB-60GB", 101 << 30: "GT100GB",
	} {
		if got := sizeRange(size); got != want {
			t.Errorf("%d bytes: %s, want %s", size, got, want)
		}
	}
	m := New()
	done := m.Pulls().PullDone
	done(images.Request{}, images.PullDone{Size: 3 << 20, Took: 7 * time.Second})
	done(images.Request{}, images.PullDone{Size: 3 << 20, Took: 7 * time.Second, Shared: true})
	done(images.Request{}, images.PullDone{Err: errors.New("no such image")})
	metricstest.Want(t, m.Collectors(),
		`kubelet_image_pull_duration_seconds_count{image_size_in_bytes="0-10MB"} 1`,
		`kubelet_image_pull_duration_seconds_bucket{image_size_in_bytes="0-10MB",le="10"} 1`)
}

func TestRelists(t *testing.T) {
	m := New()
	now := time.Unix(1000, 0)
	m.listed(now, 20*time.Millisecond, nil)
	m.listed(now.Add(3*time.Second), 20*time.Millisecond, errors.New("away"))
	trace := m.Relists()
	trace.Looked("u", time.Millisecond, nil)
	trace.EventStream(true, nil)
	trace.EventStream(false, errors.New("broken"))
	metricstest.Want(t, m.Collectors(),
		"kubelet_pleg_relist_duration_seconds_count 2", "kubelet_pleg_relist_interval_seconds_sum 3", "kubelet_pleg_last_seen_seconds 1000",
		"kubelet_pleg_pod_relist_duration_seconds_count 1",
		"kubelet_evented_pleg_connection_success_count 1", "kubelet_evented_pleg_connection_error_count 1")
}

func Example() {
	m := New()
	all := metrics.New()
	if err := all.Add(m.Collectors()...); err != nil {
		fmt.Println(err)
		return
	}
	m.Called(Call{Method: "PullImage", Took: 2 * time.Second})
	families, _ := all.Gather()
	for _, f := range families {
		if f.GetName() == "kubelet_runtime_operations_total" {
			fmt.Println(f.GetMetric()[0].GetLabel()[0].GetValue(), f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	// Output: pull_image 1
}
