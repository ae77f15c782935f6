package nodefx_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/beneath/beneathtest"
	"nodekit.dev/metrics"
	"nodekit.dev/metrics/volumemetrics"
	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime/runtimetest"
	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
	"nodekit.dev/volume/stats"
)

func TestMain(m *testing.M) { os.Exit(beneathtest.Main(m)) }

// disks is a vendor's plugin for claims: each is a tmpfs of 64 MB.
type disks struct{}

func (disks) Name() string                  { return "vendor.example/disk" }
func (disks) Supports(s volume.Source) bool { return s.PersistentVolume != nil }

func (disks) Mount(_ context.Context, req volume.MountRequest) (volume.MountResult, error) {
	if err := os.MkdirAll(req.Dir, 0o750); err != nil {
		return volume.MountResult{}, err
	}
	return volume.MountResult{HostPath: req.Dir}, unix.Mount("tmpfs", req.Dir, "tmpfs", 0, "size=64m")
}

func (disks) Mounted(_ context.Context, req volume.MountedRequest) (volume.MountedResult, error) {
	_, err := os.Stat(req.Dir)
	return volume.MountedResult{Mounted: err == nil, HostPath: req.Dir}, nil
}

func (disks) Unmount(ctx context.Context, req volume.UnmountRequest) error {
	for range req.Mounts {
		if err := unix.Unmount(req.Dir, 0); err != nil {
			return err
		}
	}
	return volume.RemoveDir(ctx, req.Dir)
}

// bindings bind each claim to a volume of its name.
type bindings struct{}

func (bindings) Claimed(_ context.Context, pod *corev1.Pod, v corev1.Volume) (volume.Source, error) {
	pv := &corev1.PersistentVolume{}
	pv.Name = "pv-" + v.PersistentVolumeClaim.ClaimName
	return volume.Source{Volume: v, PersistentVolume: pv, Claim: volume.Claim{Namespace: pod.Namespace, Name: v.PersistentVolumeClaim.ClaimName}}, nil
}

func (bindings) InUse() ([]corev1.UniqueVolumeName, bool) { return nil, true }

// mountAll has the container mount all volumes of the pod.
func mountAll(p *corev1.Pod) {
	for _, v := range p.Spec.Volumes {
		p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: "/" + v.Name})
	}
}

// eventually waits for what an agent in real time does.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func tenMegabytes(t *testing.T, dir string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, "ten"), bytes.Repeat([]byte("x"), 10<<20), 0o600))
}

// TestVolumesAreMeasured has a whole agent mount volumes, and looks at the
// figures and the metrics for a file of 10 MB.
func TestVolumesAreMeasured(t *testing.T) {
	beneathtest.NeedMounts(t)
	b := actortest.New(t, runtimetest.Config{})
	pod := actortest.Pod("1", "web", func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "conf", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{}}},
			{Name: "db", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "disk"}}},
		}
		mountAll(p)
	})
	var root string
	var contents *wire.Contents
	var from wire.VolumeStats
	m := volumemetrics.New(volumemetrics.Config{
		Claims: func() []volumemetrics.Claim { return volumemetrics.Claims(from.All()) },
		Census: func() volumemetrics.Census { return volumemetrics.CensusOf(contents.Census()) },
	})
	a := newAgent(t, append(worldWithStockVolumes(t, b),
		nodefx.Configure(func(c *wire.Config) {
			root = c.RootDir
			c.VolumeStats.Period, c.VolumeStats.Walk.Ratio = 20*time.Millisecond, 1
			c.Volume.Observer, c.VolumeStats.Observer = m.Observer(), m.StatsObserver()
		}),
		nodefx.Replace[wire.Claims](func() bindings { return bindings{} }),
		nodefx.AddVolumePlugin("disks", disks{}),
		nodefx.AddSource("go", pods{"go", []*corev1.Pod{pod}}),
		nodefx.Populate(&contents, &from),
	)...)
	must(t, a.Start(t.Context()))
	figures := func() map[string]stats.Stats {
		out := map[string]stats.Stats{}
		for _, s := range from.Snapshot("1") {
			out[s.Volume] = s
		}
		return out
	}
	eventually(t, "all three are measured", func() bool { return len(figures()) == 3 })
	empty := figures()
	if *empty["db"].Used != 0 || *empty["db"].Capacity != 64<<20 || empty["db"].Claim.Name != "disk" {
		t.Errorf("%+v", empty["db"])
	}
	for _, dir := range []string{"kubernetes.io~empty-dir/data", "vendor.example~disk/pv-disk"} {
		tenMegabytes(t, filepath.Join(root, "pods/1/volumes", dir))
	}
	eventually(t, "the figures have 10 MB more", func() bool {
		now := figures()
		more := *now["data"].Used - *empty["data"].Used
		return *now["db"].Used == 10<<20 && *now["db"].Available == 54<<20 && more >= 10<<20 && more < 10<<20+64<<10 &&
			*now["data"].InodesUsed == *empty["data"].InodesUsed+1
	})
	for _, want := range []string{
		`kubelet_volume_stats_used_bytes{namespace="` + pod.Namespace + `",persistentvolumeclaim="disk"} 1.048576e+07`,
		`kubelet_volume_stats_capacity_bytes{namespace="` + pod.Namespace + `",persistentvolumeclaim="disk"} 6.7108864e+07`,
		`kubelet_volume_metric_collection_duration_seconds_count{metric_source="du"}`,
		`kubelet_volume_metric_collection_duration_seconds_count{metric_source="statfs"}`,
		`volume_manager_total_volumes{plugin_name="vendor.example/disk",state="actual_state_of_world"} 1`,
		`volume_manager_total_volumes{plugin_name="kubernetes.io/downward-api",state="desired_state_of_world"} 1`,
		`volume_operation_total_seconds_count{operation_name="overall_volume_mount",plugin_name="kubernetes.io/empty-dir"} 1`,
		`storage_operation_duration_seconds_count{migrated="false",operation_name="volume_mount",status="success",volume_plugin="vendor.example/disk"} 1`,
	} {
		if text := shownBy(t, m); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	a.Node().StopPod("1", lifecycle.Stop{Reason: lifecycle.StopEvicted, StatusReason: "Evicted"})
	eventually(t, "a pod that is gone has no figures", func() bool { return len(from.All()) == 0 })
	eventually(t, "measuring is not in the way of the unmount", func() bool {
		_, err := os.Stat(filepath.Join(root, "pods/1/volumes/vendor.example~disk/pv-disk"))
		return errors.Is(err, fs.ErrNotExist)
	})
	must(t, a.Stop(t.Context()))
}

// TestVolumeHealth: a vendor's reader reports what is wrong with a volume, in the
// pod's status and, in the old way, as an event and a metric.
func TestVolumeHealth(t *testing.T) {
	b := actortest.New(t, runtimetest.Config{})
	var mu sync.Mutex
	var found stats.ReadResult
	say := func(r stats.ReadResult) {
		mu.Lock()
		defer mu.Unlock()
		found = r
	}
	say(stats.ReadResult{HealthKnown: true})
	reader := stats.ReaderFunc(func(_ context.Context, req stats.ReadRequest) (stats.ReadResult, error) {
		mu.Lock()
		defer mu.Unlock()
		if !req.Condition || !req.Health {
			return stats.ReadResult{}, fmt.Errorf("not asked for both: %+v", req)
		}
		return found, nil
	})
	pod := actortest.Pod("1", "web", func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		mountAll(p)
	})
	a := newAgent(t, append(worldWithStockVolumes(t, b),
		nodefx.Configure(func(c *wire.Config) {
			c.VolumeStats.Period, c.VolumeStats.Conditions, c.VolumeStats.Health = 20*time.Millisecond, true, true
		}),
		nodefx.AddVolumeReader(plugins.EmptyDir{}.Name(), reader),
		nodefx.AddSource("go", pods{"go", []*corev1.Pod{pod}}),
		nodefx.AddStatusSink(b), nodefx.AddEventSink(b),
	)...)
	if !slices.Contains(a.Groups().StatusMutators, "volume-health") {
		t.Errorf("%+v", a.Groups())
	}
	must(t, a.Start(t.Context()))
	health := func() []corev1.PodVolumeHealth { return b.Last("1").Status.VolumeHealth }
	bad := corev1.VolumeHealthCondition{Status: corev1.VolumeHealthDegraded, Reason: "SlowDisk", Message: "one of two mirrors"}
	say(stats.ReadResult{
		HealthKnown: true, Health: []corev1.VolumeHealthCondition{bad},
		Condition: &stats.Condition{Abnormal: true, Message: "a mirror is gone"},
	})
	eventually(t, "the status says so", func() bool {
		h := health()
		return len(h) == 1 && h[0].Name == "data" && slices.Equal(h[0].HealthConditions, []corev1.VolumeHealthCondition{bad}) && !h[0].LastTransitionTime.IsZero()
	})
	eventually(t, "users are told", func() bool {
		return slices.ContainsFunc(b.Events("1"), func(e string) bool { return strings.Contains(e, "VolumeConditionAbnormal") })
	})
	say(stats.ReadResult{HealthKnown: true, Condition: &stats.Condition{}})
	eventually(t, "the status has no condition any more", func() bool { h := health(); return len(h) == 1 && len(h[0].HealthConditions) == 0 })
	told := slices.DeleteFunc(b.Events("1"), func(e string) bool { return !strings.Contains(e, "VolumeConditionAbnormal") })
	if len(told) != 1 {
		t.Errorf("told %d times: %q", len(told), told)
	}
	must(t, a.Stop(t.Context()))
}

func shownBy(t *testing.T, m *volumemetrics.Metrics) string {
	t.Helper()
	r := metrics.New()
	must(t, r.Add(m.Collectors()...))
	w := httptest.NewRecorder()
	r.Handler(nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}
