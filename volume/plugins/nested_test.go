package plugins

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func podMounting(mounts ...string) *corev1.Pod {
	pod := &corev1.Pod{}
	var list []corev1.VolumeMount
	for i := 0; i < len(mounts); i += 2 {
		list = append(list, corev1.VolumeMount{Name: mounts[i], MountPath: mounts[i+1]})
	}
	pod.Spec.Containers = []corev1.Container{{Name: "c", VolumeMounts: list}}
	return pod
}

func TestNestedIn(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want []string
	}{
		"none":          {podMounting("v", "/etc/conf", "w", "/etc/config"), nil},
		"one":           {podMounting("v", "/etc/conf", "w", "/etc/conf/sub"), []string{"sub"}},
		"deep":          {podMounting("v", "/etc/conf/", "w", "/etc/conf/a/b"), []string{"a/b"}},
		"below another": {podMounting("v", "/dir", "w", "/dir/nested", "x", "/dir/nested/double"), []string{"nested"}},
		"alike names": {podMounting("v", "/dir", "a", "/dir/nested", "b", "/dir/nested-vol", "c", "/dir/nested/double", "d", "/dir/nested2"),
			[]string{"nested", "nested-vol", "nested2"}},
		"the root":         {podMounting("v", "/", "w", "/data"), []string{"data"}},
		"itself inside":    {podMounting("v", "/a", "v", "/a/b"), []string{"b"}},
		"relative is fine": {podMounting("v", "a", "w", "a/b"), []string{"b"}},
	} {
		got, err := nestedIn("v", tc.pod)
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, tc.want)
		}
	}
	if _, err := nestedIn("v", podMounting("v", "../../etc")); err == nil || err.Error() != "invalid container mount point ../../etc" {
		t.Errorf("%v", err)
	}
}

func TestMountPointsAreMade(t *testing.T) {
	dir := t.TempDir()
	w := writer{root: openRoot(t, dir)}
	pod := podMounting("v", "/conf", "w", "/conf/a/b", "x", "/conf/key")
	for range 2 {
		if err := w.mountPoints("v", pod); err != nil {
			t.Fatal(err)
		}
		if _, err := w.write(text("key", "a directory is in the way", "other", "1")); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a/b", "key"} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode() != os.ModeDir|0o755 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if got := visible(t, dir); got != "other=1" {
		t.Errorf("%s", got)
	}
}
