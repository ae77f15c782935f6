package volume_test

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
)

func TestPlace(t *testing.T) {
	root := t.TempDir()
	m := newClaimManager(t, root, &bound{})
	pod := claimingPod("u1", "db=disk")
	for _, name := range []string{"db", "data"} {
		if _, ok, err := m.Place(t.Context(), pod, name); ok || err != nil {
			t.Errorf("%s before it is mounted: %v, %v", name, ok, err)
		}
		mustMount(t, m, pod, name)
	}
	got, ok, err := m.Place(t.Context(), pod, "db")
	dir := filepath.Join(root, "pods/u1/volumes/vendor.example~shelf/pv-disk")
	if err != nil || !ok || got.Path != dir || got.Kind() != "vendor.example/shelf" || got.Claim != (volume.Claim{Namespace: "ns", Name: "disk"}) {
		t.Errorf("%+v, %v, %v", got, ok, err)
	}
	if got, ok, err := m.Place(t.Context(), pod, "data"); err != nil || !ok || got.Path != dataDir(root, "u1") || got.Plugin != "kubernetes.io/empty-dir" {
		t.Errorf("%+v, %v, %v", got, ok, err)
	}
	if _, ok, err := m.Place(t.Context(), pod, "none"); ok || err == nil {
		t.Errorf("%v, %v", ok, err)
	}
}

func TestCensus(t *testing.T) {
	root := t.TempDir()
	m := newClaimManager(t, root, &bound{})
	pod := claimingPod("u1", "db=disk")
	m.Follow(pod)
	want := func(what string, m *volume.Manager, desired, mounted map[string]int, found volume.Found) {
		t.Helper()
		got := m.Census()
		if !maps.Equal(got.Desired, desired) || !maps.Equal(got.Mounted, mounted) || got.Found != found {
			t.Errorf("%s: %+v", what, got)
		}
	}
	// What a claim becomes is known once it was mounted.
	want("at first", m, map[string]int{"kubernetes.io/empty-dir": 1}, nil, volume.Found{})
	mustMount(t, m, pod, "db")
	mustMount(t, m, pod, "data")
	both := map[string]int{"kubernetes.io/empty-dir": 1, "vendor.example/shelf": 1}
	mounted(t, m, "u1")
	want("mounted", m, both, both, volume.Found{})

	if err := os.MkdirAll(filepath.Join(root, "pods/u1/volumes/gone~plugin/old"), 0o755); err != nil {
		t.Fatal(err)
	}
	later := newClaimManager(t, root, &bound{}) // as after a restart
	mounted(t, later, "u1")
	mounted(t, later, "u1")
	later.Follow(pod)
	want("after a restart", later, both, both, volume.Found{Volumes: 2})
	if err := later.RemovePodDir(t.Context(), "u1"); err != nil {
		t.Fatal(err)
	}
	want("gone", later, nil, nil, volume.Found{Volumes: 2, Cleaned: 1})
}

// TestWholeTimeOfAMount: from when the pod first asked, with the tries that
// failed before anything was mounted.
func TestWholeTimeOfAMount(t *testing.T) {
	var seen []volume.Operation
	cluster := &bound{away: errors.New("not attached yet")}
	cfg := volume.Config{RootDir: t.TempDir(), Claims: cluster, Observer: volume.Observer{Done: func(op volume.Operation) { seen = append(seen, op) }}}
	m, err := volume.New(cfg, append(plugins.Default(), shelf{}), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	pod := claimingPod("u1", "db=disk")
	start := time.Now()
	if _, err := m.Mount(t.Context(), pod, "db"); err == nil || len(seen) != 0 {
		t.Fatalf("%v, %+v", err, seen)
	}
	<-time.After(20 * time.Millisecond)
	cluster.away = nil
	for range 2 {
		mustMount(t, m, pod, "db")
	}
	if len(seen) != 2 || seen[0].Whole < 20*time.Millisecond || seen[0].Whole > time.Since(start) || seen[0].Took > seen[0].Whole || seen[1].Whole < seen[1].Took || seen[1].Whole >= seen[0].Whole {
		t.Errorf("%+v", seen)
	}
}
