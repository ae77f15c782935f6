package volume_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
)

// shelf is a plugin for claims whose volumes are directories of their own.
type shelf struct{}

func (shelf) Name() string                  { return "vendor.example/shelf" }
func (shelf) Supports(s volume.Source) bool { return s.PersistentVolume != nil }
func (shelf) Mount(_ context.Context, req volume.MountRequest) (volume.MountResult, error) {
	return volume.MountResult{HostPath: req.Dir}, os.MkdirAll(req.Dir, 0o755)
}

func (shelf) Mounted(_ context.Context, req volume.MountedRequest) (volume.MountedResult, error) {
	_, err := os.Stat(req.Dir)
	return volume.MountedResult{Mounted: err == nil, HostPath: req.Dir, ReadOnly: req.ReadOnly}, nil
}

func (shelf) Unmount(ctx context.Context, req volume.UnmountRequest) error {
	return volume.RemoveDir(ctx, req.Dir)
}

// bound binds each claim to the PersistentVolume pv-CLAIM; away is the error of
// an API server that can not be reached.
type bound struct{ away error }

func (b *bound) Claimed(_ context.Context, pod *corev1.Pod, v corev1.Volume) (volume.Source, error) {
	claim := v.PersistentVolumeClaim
	pv := &corev1.PersistentVolume{}
	pv.Name = "pv-" + claim.ClaimName
	return volume.Source{
		Volume: v, PersistentVolume: pv, Claim: volume.Claim{Namespace: pod.Namespace, Name: claim.ClaimName}, ReadOnly: claim.ReadOnly,
	}, b.away
}

func claimingPod(uid string, volumes ...string) *corev1.Pod {
	pod := newPod(uid, "")
	for _, v := range volumes {
		name, claim, _ := strings.Cut(v, "=")
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim, ReadOnly: true}}})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
	}
	return pod
}

func newClaimManager(t *testing.T, root string, claims volume.Claims) *volume.Manager {
	t.Helper()
	m, err := volume.New(volume.Config{RootDir: root, Claims: claims}, append(plugins.Default(), shelf{}), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The directory has the PersistentVolume's name; all that a container that
// starts again needs, and all that takes the volume away, is on the host.
func TestClaimNeedsTheClusterOnlyToMount(t *testing.T) {
	root := t.TempDir()
	cluster := &bound{}
	m := newClaimManager(t, root, cluster)
	pod := claimingPod("u1", "db=disk")
	dir := filepath.Join(root, "pods/u1/volumes/vendor.example~shelf/pv-disk")
	if path := mustMount(t, m, pod, "db"); path != dir {
		t.Fatalf("mounted at %s", path)
	}

	cluster.away = errors.New("connection refused")
	m = newClaimManager(t, root, cluster) // as after a restart
	if got := mounted(t, m, "u1"); !slices.Equal(got, []string{"db"}) {
		t.Fatalf("mounted %v", got)
	}
	mounts, err := m.ContainerMounts(t.Context(), volume.ContainerMountsRequest{Pod: pod, Container: "app"})
	if err != nil || len(mounts) != 1 || mounts[0].HostPath != dir || !mounts[0].ReadOnly {
		t.Fatalf("mounts %+v, %v", mounts, err)
	}
	if err := m.Unmount(t.Context(), "u1", "db"); err != nil {
		t.Fatal(err)
	}
	wantGone(t, dir)
	if got := mounted(t, m, "u1"); len(got) != 0 {
		t.Fatalf("still mounted: %v", got)
	}
	if err := m.RemovePodDir(t.Context(), "u1"); err != nil {
		t.Fatal(err)
	}
	wantGone(t, filepath.Join(root, "pods/u1"))
}

// Two volumes of one pod may name one claim: the last one takes it away.
func TestTwoVolumesOfOneClaim(t *testing.T) {
	root := t.TempDir()
	m := newClaimManager(t, root, &bound{})
	pod := claimingPod("u1", "a=disk", "b=disk")
	dir := mustMount(t, m, pod, "a")
	if other := mustMount(t, m, pod, "b"); other != dir {
		t.Fatalf("%s and %s", dir, other)
	}
	if err := m.Unmount(t.Context(), "u1", "a"); err != nil {
		t.Fatal(err)
	}
	if got := mounted(t, m, "u1"); !slices.Equal(got, []string{"b"}) {
		t.Fatalf("mounted %v", got)
	}
	if err := m.Unmount(t.Context(), "u1", "b"); err != nil {
		t.Fatal(err)
	}
	wantGone(t, dir)
}

// A volume and another one's PersistentVolume may have the same name.
func TestVolumeNamedAsAnothersPersistentVolume(t *testing.T) {
	m := newClaimManager(t, t.TempDir(), &bound{})
	pod := claimingPod("u1", "db=disk")
	pod.Spec.Volumes[0].Name = "pv-disk"
	for _, name := range []string{"db", "pv-disk"} {
		mustMount(t, m, pod, name)
	}
	if err := m.Unmount(t.Context(), "u1", "pv-disk"); err != nil {
		t.Fatal(err)
	}
	if got := mounted(t, m, "u1"); !slices.Equal(got, []string{"db"}) {
		t.Fatalf("mounted %v", got)
	}
}

// Without its record, the volume is still found by its directory: the next
// mount brings the record back, and the pod's end takes the directory away.
func TestDamagedClaimRecord(t *testing.T) {
	root := t.TempDir()
	m := newClaimManager(t, root, &bound{})
	pod := claimingPod("u1", "db=disk")
	dir := mustMount(t, m, pod, "db")
	record := filepath.Join(root, "pods/u1/volume-claims/db")
	for _, damage := range []string{"", "{", `{"plugin":"p"}`} {
		if err := os.WriteFile(record, []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := mounted(t, m, "u1"); !slices.Equal(got, []string{"pv-disk"}) {
			t.Fatalf("%q: mounted %v", damage, got)
		}
		mustMount(t, m, pod, "db")
		if got := mounted(t, m, "u1"); !slices.Equal(got, []string{"db"}) {
			t.Fatalf("%q: mounted %v", damage, got)
		}
	}
	if err := os.Remove(record); err != nil {
		t.Fatal(err)
	}
	if err := m.RemovePodDir(t.Context(), "u1"); err != nil {
		t.Fatal(err)
	}
	wantGone(t, dir)
}

func TestClaimErrors(t *testing.T) {
	pod := claimingPod("u1", "db=disk")
	waiting := reasoned.New("FailedMount", errors.New("not attached yet"))
	for name, tc := range map[string]struct {
		claims volume.Claims
		text   string
		fatal  bool
	}{
		"no cluster":   {nil, "no cluster", true},
		"not attached": {&bound{away: waiting}, `MountVolume.SetUp failed for volume "db" : not attached yet`, false},
	} {
		m := newClaimManager(t, t.TempDir(), tc.claims)
		_, err := m.Mount(t.Context(), pod, "db")
		if err == nil || !strings.Contains(err.Error(), tc.text) || reasoned.Fatal(err) != tc.fatal || reasoned.Reason(err, "") != "FailedMount" {
			t.Errorf("%s: %v, fatal %v, reason %s", name, err, reasoned.Fatal(err), reasoned.Reason(err, ""))
		}
		if _, err := m.ContainerMounts(t.Context(), volume.ContainerMountsRequest{Pod: pod, Container: "app"}); err == nil || !strings.Contains(err.Error(), "volume is not mounted") {
			t.Errorf("%s: mounts of a volume that is not there: %v", name, err)
		}
	}
}
