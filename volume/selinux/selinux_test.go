package selinux

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
)

const base = "system_u:object_r:container_file_t:s0"

func TestFileLabel(t *testing.T) {
	for name, tc := range map[string]struct {
		base string
		o    *corev1.SELinuxOptions
		want string // empty with bad: an error
		bad  string
	}{
		"no options":       {base, nil, "", ""},
		"no level":         {base, &corev1.SELinuxOptions{Type: "spc_t", User: "u"}, "", ""},
		"level":            {base, &corev1.SELinuxOptions{Level: "s0:c1,c2"}, "system_u:object_r:container_file_t:s0:c1,c2", ""},
		"user":             {base, &corev1.SELinuxOptions{Level: "s0:c1", User: "staff_u"}, "staff_u:object_r:container_file_t:s0:c1", ""},
		"type is a task's": {base, &corev1.SELinuxOptions{Level: "s0:c1", Type: "spc_t", Role: "r"}, "system_u:object_r:container_file_t:s0:c1", ""},
		"strange host":     {"x", &corev1.SELinuxOptions{Level: "s0"}, "", "USER:ROLE:TYPE:LEVEL"},
		"a mount option":   {base, &corev1.SELinuxOptions{Level: `s0",exec,context="x`}, "", "can not be part of a label"},
	} {
		got, err := FileLabel(tc.base, tc.o)
		if got != tc.want || (err == nil) != (tc.bad == "") || err != nil && !strings.Contains(err.Error(), tc.bad) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func options(level string) *corev1.SELinuxOptions { return &corev1.SELinuxOptions{Level: level} }

// newPod mounts the volume "data" into containers with these levels; "-" has no
// options of its own.
func newPod(uid, podLevel string, levels ...string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.UID = types.UID(uid)
	if podLevel != "" {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{SELinuxOptions: options(podLevel)}
	}
	for _, level := range levels {
		c := corev1.Container{Name: "c" + level, VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/d"}}}
		if level != "-" {
			c.SecurityContext = &corev1.SecurityContext{SELinuxOptions: options(level)}
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	pod.Spec.InitContainers = []corev1.Container{{Name: "other", SecurityContext: &corev1.SecurityContext{SELinuxOptions: options("s9")}}}
	return pod
}

func TestWanted(t *testing.T) {
	label := func(level string) string { return strings.TrimSuffix(base, "s0") + level }
	for name, tc := range map[string]struct {
		pod      *corev1.Pod
		want     string
		mismatch bool
	}{
		"nobody says":                   {newPod("u", "", "-"), "", false},
		"the pod says":                  {newPod("u", "s0:c1", "-", "-"), label("s0:c1"), false},
		"a container says":              {newPod("u", "s0:c1", "s0:c2", "s0:c2"), label("s0:c2"), false},
		"containers differ":             {newPod("u", "s0:c1", "-", "s0:c2"), "", true},
		"one is known, the other isn't": {newPod("u", "", "-", "s0:c2"), "", true},
		"nobody mounts it":              {newPod("u", "s0:c1"), "", false},
	} {
		got, err := Wanted(base, tc.pod, "data")
		var mismatch *MismatchError
		if got != tc.want || errors.As(err, &mismatch) != tc.mismatch {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func claimed(driver, handle string, modes ...corev1.PersistentVolumeAccessMode) volume.Source {
	pv := &corev1.PersistentVolume{}
	pv.Name = "pv-" + handle
	pv.Spec.AccessModes = modes
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}
	return volume.Source{Volume: corev1.Volume{Name: "data"}, PersistentVolume: pv, SELinuxMount: driver == "good"}
}

// bed is Labels of a host with SELinux.
type bed struct {
	*Labels
	told []Outcome
}

func newBed(t *testing.T, change ...func(*Config)) *bed {
	t.Helper()
	b := &bed{}
	cfg := Config{Host: Host{Enabled: true, Files: base}, OneUser: true, AllVolumes: true, Outcome: func(o Outcome) { b.told = append(b.told, o) }}
	for _, c := range change {
		c(&cfg)
	}
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.Labels = l
	return b
}

func (b *bed) label(t *testing.T, pod *corev1.Pod, s volume.Source) (string, error) {
	t.Helper()
	return b.Label(t.Context(), volume.LabelRequest{Pod: pod, Plugin: "kubernetes.io/csi", Source: s})
}

func (b *bed) want(t *testing.T, what string, pod *corev1.Pod, s volume.Source, want string) {
	t.Helper()
	if got, err := b.label(t, pod, s); err != nil || got != want {
		t.Errorf("%s: %q, %v; want %q", what, got, err, want)
	}
}

const one = "system_u:object_r:container_file_t:s0:c1"

func TestWhichVolumesGetALabel(t *testing.T) {
	pod := newPod("u", "s0:c1", "-")
	rwo, rwop := corev1.ReadWriteOnce, corev1.ReadWriteOncePod
	b := newBed(t)
	b.want(t, "a driver that can", pod, claimed("good", "1", rwo), one)
	b.want(t, "the same again", pod, claimed("good", "1", rwo), one)
	b.want(t, "a driver that can not", pod, claimed("bad", "2", rwo), "")
	b.want(t, "no CSI", pod, volume.Source{Volume: corev1.Volume{Name: "data"}}, "")
	inline := volume.Source{Volume: corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "good"}}}, SELinuxMount: true}
	newBed(t).want(t, "inline", pod, inline, one)
	if len(b.told) != 1 || b.told[0] != (Outcome{Plugin: "kubernetes.io/csi/good", AccessMode: "RWO"}) {
		t.Errorf("told %+v", b.told)
	}

	policy := corev1.SELinuxChangePolicyRecursive
	files := newPod("v", "s0:c1", "-", "s0:c2")
	files.Spec.SecurityContext.SELinuxChangePolicy = &policy
	b.want(t, "file by file", files, claimed("good", "4", rwo), "")

	off := newBed(t, func(c *Config) { c.Host.Enabled = false })
	off.want(t, "no SELinux", pod, claimed("good", "1", rwo), "")
	some := newBed(t, func(c *Config) { c.AllVolumes = false })
	some.want(t, "one user at a time", pod, claimed("good", "1", rwop), one)
	some.want(t, "others", pod, claimed("good", "2", rwo), "")
	none := newBed(t, func(c *Config) { c.AllVolumes, c.OneUser = false, false })
	none.want(t, "gates off", pod, claimed("good", "1", rwop), "")
	if _, err := New(Config{AllVolumes: true}); err == nil {
		t.Error("AllVolumes without OneUser was taken")
	}
}

func TestPodsThatNeedDifferentLabels(t *testing.T) {
	shared := claimed("good", "1", corev1.ReadWriteMany)
	first, second := newPod("u", "s0:c1", "-"), newPod("v", "s0:c2", "-")
	b := newBed(t)
	b.want(t, "first", first, shared, one)
	_, err := b.label(t, second, shared)
	var conflict *ConflictError
	if !errors.As(err, &conflict) || reasoned.Reason(err, "") != "FailedMount" || reasoned.RetryAfter(err, 0) != conflictRetry ||
		!strings.Contains(err.Error(), `conflicting SELinux labels of volume pv-1: "`+one+`" and "system_u:object_r:container_file_t:s0:c2"`) {
		t.Errorf("error %v", err)
	}
	if last := b.told[len(b.told)-1]; !last.Refused || last.AccessMode != "RWX" || !errors.As(last.Err, &conflict) {
		t.Errorf("told %+v", last)
	}
	b.want(t, "a pod with the same", newPod("w", "s0:c1", "-"), shared, one)
	b.Release("u", "data")
	if _, err := b.label(t, second, shared); err == nil {
		t.Error("the third pod still has it")
	}
	b.Release("w", "data")
	b.Release("w", "data")
	b.want(t, "nobody has it any more", second, shared, strings.Replace(one, "c1", "c2", 1))

	if _, err := b.label(t, newPod("x", "s0:c1", "-", "s0:c3"), claimed("good", "2", corev1.ReadWriteOnce)); err == nil || !b.told[len(b.told)-1].Refused {
		t.Errorf("containers differ: %v, told %+v", err, b.told)
	}

	// Where such volumes get no labels yet, that is only told.
	some := newBed(t, func(c *Config) { c.AllVolumes = false })
	some.want(t, "first", first, shared, "")
	some.want(t, "second", second, shared, "")
	if len(some.told) != 1 || some.told[0].Refused || !errors.As(some.told[0].Err, &conflict) {
		t.Errorf("told %+v", some.told)
	}
}

func TestLabelsOfAnEarlierAgent(t *testing.T) {
	has := claimed("good", "1", corev1.ReadWriteMany)
	has.SELinuxLabel = one
	broken := true
	b := newBed(t, func(c *Config) {
		c.Recorded = func() ([]volume.Recorded, error) {
			if broken {
				return nil, errors.New("disk")
			}
			return []volume.Recorded{{UID: "u", Source: has}, {UID: "u", Source: volume.Source{Volume: corev1.Volume{Name: "x"}}}}, nil
		}
	})
	second := newPod("v", "s0:c2", "-")
	if _, err := b.label(t, second, has); err == nil {
		t.Error("a label was given although nobody knows which there are")
	}
	broken = false
	var conflict *ConflictError
	if _, err := b.label(t, second, has); !errors.As(err, &conflict) {
		t.Errorf("error %v", err)
	}
	b.Release("u", "data")
	b.want(t, "the pod of the earlier agent is gone", second, has, strings.Replace(one, "c1", "c2", 1))
}

func TestReadHost(t *testing.T) {
	root := t.TempDir()
	if h, err := ReadHost(root); h.Enabled || err != nil {
		t.Errorf("%+v, %v", h, err)
	}
	files := map[string]string{
		"sys/fs/selinux/enforce":                     "0",
		"etc/selinux/config":                         "# a comment\nSELINUX=permissive\nSELINUXTYPE=targeted\n",
		"etc/selinux/targeted/contexts/lxc_contexts": "process = \"system_u:system_r:container_t:s0\"\nfile = \"" + base + "\"\nro_file=\"x\"\n",
	}
	write := func() {
		for name, text := range files {
			path := filepath.Join(root, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	write()
	if h, err := ReadHost(root); err != nil || h != (Host{Enabled: true, Files: base}) {
		t.Errorf("%+v, %v", h, err)
	}
	files["etc/selinux/targeted/contexts/lxc_contexts"] = ""
	write()
	if _, err := ReadHost(root); err == nil || !strings.Contains(err.Error(), "lxc_contexts does not say") {
		t.Errorf("error %v", err)
	}
}
