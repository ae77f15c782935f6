package volume_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
)

func TestContainerMountFields(t *testing.T) {
	m, _ := newManager(t)
	pod := newPod("u", "/srv")
	data := mustMount(t, m, pod, "data")
	rro := func(mode corev1.RecursiveReadOnlyMode) *corev1.RecursiveReadOnlyMode { return &mode }
	prop := func(mode corev1.MountPropagationMode) *corev1.MountPropagationMode { return &mode }
	for name, tc := range map[string]struct {
		mount   corev1.VolumeMount
		rro     bool // the runtime can
		want    volume.ContainerMount
		wantErr string
	}{
		"plain":                {mount: corev1.VolumeMount{MountPath: "/a"}, want: volume.ContainerMount{ContainerPath: "/a", Propagation: "private"}},
		"relative path":        {mount: corev1.VolumeMount{MountPath: "a/b/"}, want: volume.ContainerMount{ContainerPath: "/a/b", Propagation: "private"}},
		"read-only":            {mount: corev1.VolumeMount{MountPath: "/a", ReadOnly: true}, want: volume.ContainerMount{ContainerPath: "/a", ReadOnly: true, Propagation: "private"}},
		"None":                 {mount: corev1.VolumeMount{MountPath: "/a", MountPropagation: prop("None")}, want: volume.ContainerMount{ContainerPath: "/a", Propagation: "private"}},
		"HostToContainer":      {mount: corev1.VolumeMount{MountPath: "/a", MountPropagation: prop("HostToContainer")}, want: volume.ContainerMount{ContainerPath: "/a", Propagation: "hostToContainer"}},
		"Bidirectional":        {mount: corev1.VolumeMount{MountPath: "/a", MountPropagation: prop("Bidirectional")}, want: volume.ContainerMount{ContainerPath: "/a", Propagation: "bidirectional"}},
		"unknown propagation":  {mount: corev1.VolumeMount{MountPath: "/a", MountPropagation: prop("Sideways")}, wantErr: "Sideways"},
		"Disabled":             {mount: corev1.VolumeMount{MountPath: "/a", ReadOnly: true, RecursiveReadOnly: rro("Disabled")}, rro: true, want: volume.ContainerMount{ContainerPath: "/a", ReadOnly: true, Propagation: "private"}},
		"IfPossible, can":      {mount: corev1.VolumeMount{MountPath: "/a", ReadOnly: true, RecursiveReadOnly: rro("IfPossible")}, rro: true, want: volume.ContainerMount{ContainerPath: "/a", ReadOnly: true, RecursiveReadOnly: true, Propagation: "private"}},
		"IfPossible, can not":  {mount: corev1.VolumeMount{MountPath: "/a", ReadOnly: true, RecursiveReadOnly: rro("IfPossible")}, want: volume.ContainerMount{ContainerPath: "/a", ReadOnly: true, Propagation: "private"}},
		"Enabled, can":         {mount: corev1.VolumeMount{MountPath: "/a", ReadOnly: true, RecursiveReadOnly: rro("Enabled")}, rro: true, want: volume.ContainerMount{ContainerPath: "/a", ReadOnly: true, RecursiveReadOnly: true, Propagation: "private"}},
		"Enabled, can not":     {mount: corev1.VolumeMount{MountPath: "/a", ReadOnly: true, RecursiveReadOnly: rro("Enabled")}, wantErr: "not supported by the runtime"},
		"Enabled, writable":    {mount: corev1.VolumeMount{MountPath: "/a", RecursiveReadOnly: rro("Enabled")}, rro: true, wantErr: "needs readOnly"},
		"Enabled, propagation": {mount: corev1.VolumeMount{MountPath: "/a", ReadOnly: true, RecursiveReadOnly: rro("Enabled"), MountPropagation: prop("HostToContainer")}, rro: true, wantErr: "does not go with"},
		"unknown recursive":    {mount: corev1.VolumeMount{MountPath: "/a", ReadOnly: true, RecursiveReadOnly: rro("Maybe")}, rro: true, wantErr: "Maybe"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.mount.Name, tc.want.HostPath, tc.want.SELinuxRelabel = "data", data, true
			got, err := m.ContainerMounts(t.Context(), volume.ContainerMountsRequest{
				Pod: newPod("u", "", tc.mount), Container: "app", RecursiveReadOnly: tc.rro})
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error %v, want %q in it", err, tc.wantErr)
				}
				return
			}
			if err != nil || len(got) != 1 || got[0] != tc.want {
				t.Errorf("%+v, %v; want %+v", got, err, tc.want)
			}
		})
	}
}

func TestContainerMountsFindsEveryKindOfContainer(t *testing.T) {
	m, _ := newManager(t)
	pod := newPod("u", "/srv")
	mounts := []corev1.VolumeMount{{Name: "host", MountPath: "/h"}}
	pod.Spec.InitContainers = []corev1.Container{{Name: "init", VolumeMounts: mounts}}
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", VolumeMounts: mounts}}}
	for _, name := range []string{"init", "debug"} {
		got, err := m.ContainerMounts(t.Context(), volume.ContainerMountsRequest{Pod: pod, Container: name})
		if err != nil || len(got) != 1 || got[0].HostPath != "/srv" {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if got, err := m.ContainerMounts(t.Context(), volume.ContainerMountsRequest{Pod: pod, Container: "app"}); err != nil || len(got) != 0 {
		t.Errorf("app: %v, %v", got, err)
	}
}

func TestContainerMountsOfWhatIsNotThere(t *testing.T) {
	m, _ := newManager(t)
	for name, tc := range map[string]struct {
		container, volume, want string
	}{
		"no such container": {"other", "data", `no container "other"`},
		"no such volume":    {"app", "nope", `cannot find volume "nope" to mount into container "app"`},
		"not mounted":       {"app", "data", "not mounted"},
	} {
		_, err := m.ContainerMounts(t.Context(), volume.ContainerMountsRequest{
			Pod: newPod("u", "", corev1.VolumeMount{Name: tc.volume, MountPath: "/x"}), Container: tc.container})
		if err == nil || !strings.Contains(err.Error(), tc.want) || reasoned.Reason(err, "") != "CreateContainerConfigError" {
			t.Errorf("%s: error %v (reason %q), want %q in it", name, err, reasoned.Reason(err, ""), tc.want)
		}
	}
}
