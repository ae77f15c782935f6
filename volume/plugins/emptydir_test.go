package plugins_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"nodekit.dev/internal/beneath"
	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
)

func emptyDir(e corev1.EmptyDirVolumeSource) volume.Source {
	return volume.Source{Volume: corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &e}}}
}

func TestEmptyDirInMemory(t *testing.T) {
	const mi = int64(1 << 20)
	for name, tc := range map[string]struct {
		limit, pod int64
		want       int64 // 0: the kernel's
	}{
		"sizeLimit":              {2 * mi, 0, 2 * mi},
		"the pod's memory":       {0, 4 * mi, 4 * mi},
		"sizeLimit is lower":     {2 * mi, 4 * mi, 2 * mi},
		"the pod's is lower":     {8 * mi, 4 * mi, 4 * mi},
		"no limit":               {0, 0, 0},
		"a sizeLimit of nothing": {-1, 4 * mi, 4 * mi},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, plugins.EmptyDir{MemorySize: func(*corev1.Pod) int64 { return tc.pod }})
			s := emptyDir(corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory})
			if tc.limit != 0 {
				s.Volume.EmptyDir.SizeLimit = resource.NewQuantity(max(tc.limit, 0), resource.BinarySI)
			}
			for range 2 {
				if _, err := r.mount("a", s); err != nil {
					t.Fatal(err)
				}
			}
			var st unix.Statfs_t
			if err := unix.Statfs(r.dir("a"), &st); err != nil || st.Type != unix.TMPFS_MAGIC {
				t.Fatalf("type %x, %v", st.Type, err)
			}
			if got := int64(st.Blocks) * st.Bsize; tc.want != 0 && got != tc.want || tc.want == 0 && got < 64*mi {
				t.Errorf("room for %d bytes", got)
			}
			if info, err := os.Stat(r.dir("a")); err != nil || info.Mode() != fs.ModeDir|0o777 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			if points, err := (volume.HostMounter{}).MountPoints(r.dir("a")); len(points) != 1 || err != nil {
				t.Errorf("mounted %d times, %v", len(points), err)
			}
			if err := os.WriteFile(filepath.Join(r.dir("a"), "f"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := r.unmount("a"); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := os.Lstat(r.dir("a")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("left: %v", err)
			}
		})
	}
}

// After the machine started anew, the directory and its ready file are there,
// the memory is not: also for who knows no more than the volume's name.
func TestEmptyDirInMemoryAfterAReboot(t *testing.T) {
	r := newRig(t, plugins.EmptyDir{})
	s := emptyDir(corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory})
	if _, err := r.mount("a", s); err != nil {
		t.Fatal(err)
	}
	byName := volume.Source{Volume: corev1.Volume{Name: "v"}}
	if !r.mounted("a", byName).Mounted {
		t.Error("not mounted")
	}
	if err := unix.Unmount(r.dir("a"), 0); err != nil {
		t.Fatal(err)
	}
	if r.mounted("a", byName).Mounted || r.mounted("a", s).Mounted {
		t.Error("a directory on the disk is taken for one in memory")
	}
	if _, err := r.mount("a", s); err != nil || !r.mounted("a", s).Mounted {
		t.Fatal(err)
	}
	if err := r.unmount("a"); err != nil {
		t.Fatal(err)
	}
}

func TestEmptyDirKeepsMountsThatAreNotItsOwn(t *testing.T) {
	r := newRig(t, plugins.EmptyDir{})
	for _, medium := range []corev1.StorageMedium{corev1.StorageMediumDefault, corev1.StorageMediumMemory} {
		if _, err := r.mount("a", emptyDir(corev1.EmptyDirVolumeSource{Medium: medium})); err != nil {
			t.Fatal(err)
		}
		at := r.dir("a")
		if medium == corev1.StorageMediumMemory {
			if at = filepath.Join(at, "below"); os.Mkdir(at, 0o700) != nil {
				t.Fatal("no directory")
			}
		}
		if err := unix.Mount("tmpfs", at, "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		var mount *beneath.MountError
		if err := r.unmount("a"); !errors.As(err, &mount) || mount.Path != at {
			t.Errorf("%q: %v", medium, err)
		}
		if err := unix.Unmount(at, 0); err != nil {
			t.Fatalf("%q: the mount is gone: %v", medium, err)
		}
		if err := r.unmount("a"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEmptyDirOfHugePages(t *testing.T) {
	pages := func(sizes ...string) *corev1.Pod {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{}}}}}}
		for _, size := range sizes {
			pod.Spec.Containers[0].Resources.Limits[corev1.ResourceName(corev1.ResourceHugePagesPrefix+size)] = resource.MustParse(size)
		}
		return pod
	}
	const none = "medium HugePages%s: hugePages storage requested, but there is no resource request for huge pages"
	for name, tc := range map[string]struct {
		pod    *corev1.Pod
		medium corev1.StorageMedium
		want   string // the error; empty: pages of 2 MiB
	}{
		"any size":        {pages("2Mi"), "HugePages", ""},
		"that size":       {pages("2Mi", "1Gi"), "HugePages-2Mi", ""},
		"which one":       {pages("2Mi", "1Gi"), "HugePages", "medium: HugePages can't be used if container requests multiple huge page sizes"},
		"none":            {pages(), "HugePages", fmt.Sprintf(none, "")},
		"another":         {pages("1Gi"), "HugePages-2Mi", fmt.Sprintf(none, "-2Mi")},
		"no size":         {pages("2Mi"), "HugePages-x", `unknown storage medium "HugePages-x"`},
		"no known medium": {pages(), "Tape", `unknown storage medium "Tape"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, plugins.EmptyDir{})
			limit := resource.MustParse("4Mi")
			req := volume.MountRequest{Pod: tc.pod, Source: emptyDir(corev1.EmptyDirVolumeSource{Medium: tc.medium, SizeLimit: &limit}), Dir: r.dir("a"), MetaDir: r.meta("a")}
			_, err := r.plugin.Mount(t.Context(), req)
			if tc.want != "" {
				if err == nil || err.Error() != tc.want || !reasoned.Fatal(err) {
					t.Errorf("%v, want %s", err, tc.want)
				}
			} else if err != nil && !strings.Contains(err.Error(), "huge pages") {
				t.Fatal(err)
			} else if err == nil {
				var st unix.Statfs_t
				if err := unix.Statfs(r.dir("a"), &st); err != nil || st.Type != unix.HUGETLBFS_MAGIC || st.Bsize != 2<<20 || st.Blocks != 2 {
					t.Errorf("%+v, %v", st, err)
				}
			} else {
				t.Log("no huge pages of 2 MiB here:", err)
			}
			for range 2 {
				if err := r.unmount("a"); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestEmptyDirMode(t *testing.T) {
	r := newRig(t, plugins.EmptyDir{Modes: true})
	for mode, want := range map[int32]fs.FileMode{0o700: 0o700, 0o1777: 0o777 | fs.ModeSticky, 0: 0} {
		s := emptyDir(corev1.EmptyDirVolumeSource{Mode: &mode})
		if _, err := r.mount("a", s); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(r.dir("a")); err != nil || info.Mode() != fs.ModeDir|want {
			t.Errorf("%o: %v, %v", mode, info.Mode(), err)
		}
		if err := r.unmount("a"); err != nil {
			t.Fatal(err)
		}
	}
	mode, group := int32(0o700), int64(4242)
	pod := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{FSGroup: &group}}}
	req := volume.MountRequest{Pod: pod, Source: emptyDir(corev1.EmptyDirVolumeSource{Mode: &mode}), Dir: r.dir("b"), MetaDir: r.meta("b")}
	if _, err := r.plugin.Mount(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(req.Dir); err != nil || info.Mode() != fs.ModeDir|fs.ModeSetgid|0o770 {
		t.Errorf("with an fsGroup: %v, %v", info.Mode(), err)
	}
	if err := r.unmount("b"); err != nil {
		t.Fatal(err)
	}
	if _, err := (plugins.EmptyDir{}).Mount(t.Context(), volume.MountRequest{Pod: &corev1.Pod{}, Source: req.Source, Dir: r.dir("c"), MetaDir: r.meta("c")}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(r.dir("c")); err != nil || info.Mode() != fs.ModeDir|0o777 {
		t.Errorf("without the gate: %v, %v", info.Mode(), err)
	}
}

func TestOwnersOfFiles(t *testing.T) {
	for gate, want := range map[bool][2]uint32{true: {8, 7}, false: {0, 0}} {
		sources := newCluster().sources()
		sources.FileUsers = gate
		for _, p := range plugins.FromObjects(sources) {
			item, whole := int64(8), int64(7)
			items := []corev1.KeyToPath{{Key: "user", Path: "a", User: &item}, {Key: "pass", Path: "b"}}
			of := func(v corev1.VolumeSource) volume.Source {
				return volume.Source{Volume: corev1.Volume{Name: "v", VolumeSource: v}}
			}
			s := of(secretSource(corev1.SecretVolumeSource{Items: items, DefaultUser: &whole}))
			if !p.Supports(s) {
				s = of(projectedSource(corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}, Items: items}}))
				s.Volume.Projected.DefaultUser = &whole
			}
			if !p.Supports(s) {
				continue
			}
			r := newRig(t, p)
			if _, err := r.mount("a", s); err != nil {
				t.Fatal(err)
			}
			for i, name := range []string{"a", "b"} {
				var st unix.Stat_t
				if err := unix.Stat(filepath.Join(r.dir("a"), name), &st); err != nil || st.Uid != want[i] {
					t.Errorf("gate %v, %s: %s belongs to %d, want %d, %v", gate, p.Name(), name, st.Uid, want[i], err)
				}
			}
			if err := r.unmount("a"); err != nil {
				t.Fatal(err)
			}
		}
	}
}
