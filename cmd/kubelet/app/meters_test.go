package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/cluster"
	"nodekit.dev/node/expand"
	"nodekit.dev/node/server"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime/cri"
	"nodekit.dev/volume"
	"nodekit.dev/volume/stats"
)

// Every Observer of a cluster's agent is filled, and what they are told shows.
func TestMeters(t *testing.T) {
	s := settingsOf(t, "")
	m, err := newMeters(s, "edge-7", func() []node.PodView { return nil })
	if err != nil {
		t.Fatal(err)
	}
	cfg := wire.Default()
	m.observe(&cfg)
	joins := cluster.Default()
	m.observeCluster(&joins)
	cfg.CRI.Observer.Called(cri.Call{Method: "PullImage", Took: time.Second, Err: errors.New("away")})
	joins.Certs.Observer.RenewFailed("client", errors.New("away"))
	m.requests().Begun(server.Request{Method: "GET", Path: "pods", Port: server.ReadWrite})
	joins.StatusObserver.Written(time.Second)
	joins.RegisterObserver.Registering()
	cfg.Volume.Observer.Done(volume.Operation{Kind: "mount", Plugin: "kubernetes.io/csi", Driver: "d", Whole: 7 * time.Second})
	grown := volume.Recorded{Source: volume.Source{PersistentVolume: &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d"}},
	}}}}
	joins.Expand.Observer.Grew(expand.Growth{Volume: grown, Took: 3 * time.Second, Err: &expand.Failure{Kind: expand.InUse, Err: errors.New("in use")}})
	joins.Expand.Observer.Grew(expand.Growth{Volume: grown, Took: 7 * time.Second})
	cfg.VolumeStats.Observer.Measured(stats.Measured{Source: "du", Took: time.Second})
	m.shown.stats = measured{}
	cfg.NodeObserver.PodAdded(node.PodView{UID: "u", Pod: &corev1.Pod{}})
	routes := m.routes(slog.New(slog.DiscardHandler))
	text := get(t, routes[0].Value.Handler)
	for _, want := range []string{
		`kubelet_node_name{node="edge-7"} 1`, "kubelet_running_pods 0", "kubelet_containers_per_pod_count_count 1", `kubelet_runtime_operations_errors_total{operation_type="pull_image"} 1`,
		"kubelet_certificate_manager_client_expiration_renew_errors 1", "kubelet_certificate_manager_client_ttl_seconds +Inf",
		`kubelet_http_requests_total{long_running="false",method="GET",path="pods",server_type="readwrite"} 1`,
		"kubelet_pod_status_sync_duration_seconds_count 1", `kubernetes_feature_enabled{name="EventedPLEG",stage="ALPHA"} 0`,
		`volume_operation_total_seconds_bucket{operation_name="overall_volume_mount",plugin_name="kubernetes.io/csi:d",le="10"} 1`,
		`storage_operation_duration_seconds_sum{migrated="false",operation_name="volume_fs_resize",status="fail-unknown",volume_plugin="kubernetes.io/csi:d"} 3`,
		`storage_operation_duration_seconds_sum{migrated="false",operation_name="volume_fs_resize",status="success",volume_plugin="kubernetes.io/csi:d"} 7`,
		`kubelet_volume_metric_collection_duration_seconds_count{metric_source="du"} 1`,
		`kubelet_volume_stats_used_bytes{namespace="ns",persistentvolumeclaim="db"} 5`,
		`kubernetes_feature_enabled{name="PLEGOnDemandRelist",stage=""} 1`, "go_goroutines ", "process_resident_memory_bytes ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	if text := get(t, routes[1].Value.Handler); text != "" {
		t.Errorf("/metrics/probes shows %q before there are probes", text)
	}
}

// measured has one volume.
type measured struct{}

func (measured) Snapshot(string) []stats.Stats { return nil }
func (measured) All() []stats.Stats {
	return []stats.Stats{{Claim: volume.Claim{Namespace: "ns", Name: "db"}, Usage: stats.Usage{Used: new(int64(5))}}}
}

func get(t *testing.T, h http.Handler) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// A running agent counts what it does, and shows it on its socket.
func TestMetricsOfARunningAgent(t *testing.T) {
	b := newBed(t)
	b.manifest(t)
	_, stop := start(t, b.flags(t, ""))
	b.awaitRunning(t)
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", filepath.Join(b.dir, "root", SocketName))
		},
	}}
	await(t, "metrics of a running pod", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://agent/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		for _, want := range []string{
			"kubelet_running_pods 1\n", `kubelet_started_containers_total{container_type="container"} 1`, "kubelet_started_pods_total 1\n",
			"kubelet_pod_start_duration_seconds_count 1\n", `kubelet_runtime_operations_total{operation_type="run_podsandbox"} 1`,
			`kubelet_image_pull_duration_seconds_count{`, "kubelet_pleg_relist_duration_seconds_count ", `kubelet_desired_pods{static="true"} 1`,
			"reconstruct_volume_operations_total 0\n", `kubelet_pod_worker_duration_seconds_count{operation_type="create"}`, `kubelet_node_name{node="node1"} 1`,
		} {
			if err != nil || !strings.Contains(string(text), want) {
				return false
			}
		}
		return true
	})
	if code := stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
