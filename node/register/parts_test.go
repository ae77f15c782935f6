package register

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/runtime"
)

func TestCheckLabels(t *testing.T) {
	const sets = "\n--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix (kubelet.kubernetes.io, node.kubernetes.io) or be in the " +
		"specifically allowed set (beta.kubernetes.io/arch, beta.kubernetes.io/instance-type, beta.kubernetes.io/os, failure-domain.beta.kubernetes.io/region, " +
		"failure-domain.beta.kubernetes.io/zone, kubernetes.io/arch, kubernetes.io/hostname, kubernetes.io/os, node.kubernetes.io/instance-type, " +
		"topology.kubernetes.io/region, topology.kubernetes.io/zone)"
	vendor := func(key string) bool { return strings.HasPrefix(key, "node-role.kubernetes.io/") }
	for _, tt := range []struct {
		labels map[string]string
		allow  func(string) bool
		want   string
	}{
		{labels: map[string]string{"a": "b", "example.com/x": "", "node.kubernetes.io/role": "x", "x.kubelet.kubernetes.io/y": "z", "kubernetes.io/arch": "amd64"}},
		{
			labels: map[string]string{"node-role.kubernetes.io/worker": "", "k8s.io/x": "", "a.k8s.io/y": "", "mykubernetes.io/x": ""},
			want:   "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [a.k8s.io/y k8s.io/x node-role.kubernetes.io/worker]" + sets,
		},
		{labels: map[string]string{"node-role.kubernetes.io/worker": ""}, allow: vendor},
		{labels: map[string]string{"k8s.io/x": ""}, allow: vendor, want: "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [k8s.io/x]" + sets},
		{labels: map[string]string{"a b": "c", "d": "e f"}, want: "invalid node labels: 'a b' - "},
	} {
		err := CheckLabels(tt.labels, tt.allow)
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt.labels, err, tt.want)
		}
	}
}

func TestExternalCloudIsTainted(t *testing.T) {
	n := initialNode(Config{NodeName: "n1", Hostname: "h", ExternalCloud: true})
	want := []corev1.Taint{{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: "NoSchedule"}}
	if diff := cmp.Diff(want, n.Spec.Taints); diff != "" || n.Annotations != nil {
		t.Errorf("%v %s", n.Annotations, diff)
	}
}

func TestReconcileAttachAnnotation(t *testing.T) {
	by := initialNode(Config{NodeName: "n1", AttachByController: true})
	own := initialNode(Config{NodeName: "n1"})
	existing := own.DeepCopy()
	reconcile(by, existing)
	if existing.Annotations[annotationAttach] != "true" {
		t.Errorf("attaching by the controller: %v", existing.Annotations)
	}
	reconcile(own, existing)
	if _, has := existing.Annotations[annotationAttach]; has {
		t.Errorf("attaching by the agent: %v", existing.Annotations)
	}
}

func TestLargestImages(t *testing.T) {
	all := []runtime.ImageInfo{
		{ID: "b", Size: 5, RepoTags: []string{"b:1"}},
		{ID: "a", Size: 5, RepoDigests: []string{"a@1", "a@2", "a@3"}, RepoTags: []string{"a:1", "a:2", "a:3"}},
		{ID: "c", Size: 9},
		{ID: "d", Size: 1, RepoTags: []string{"d:1"}},
	}
	for most, want := range map[int]string{
		-1: "9[] 5[a@1 a@2 a@3 a:1 a:2] 5[b:1] 1[d:1]", 2: "9[] 5[a@1 a@2 a@3 a:1 a:2]", 0: "", 9: "9[] 5[a@1 a@2 a@3 a:1 a:2] 5[b:1] 1[d:1]",
	} {
		var got []string
		for _, i := range largest(all, most) {
			got = append(got, fmt.Sprintf("%d%v", i.SizeBytes, i.Names))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%d: %v, want %s", most, got, want)
		}
	}
}

// TestImagesAreReadRarely, and what was told stays when they can not be read.
func TestImagesAreReadRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, broken := 0, false
		s := newImageSetter(50, func(context.Context) ([]runtime.ImageInfo, error) {
			reads++
			if broken {
				return nil, errors.New("no answer")
			}
			return []runtime.ImageInfo{{ID: fmt.Sprint(reads), Size: uint64(reads)}}, nil
		})
		n := &corev1.Node{}
		for range 4 {
			if err := s.Set(t.Context(), n); err != nil || n.Status.Images[0].SizeBytes != 1 {
				t.Fatalf("%v, %v", n.Status.Images, err)
			}
			<-time.After(9 * time.Second)
		}
		broken = true
		if err := s.Set(t.Context(), n); err == nil || err.Error() != "error getting image list: no answer" || n.Status.Images[0].SizeBytes != 1 {
			t.Errorf("%v, %v", n.Status.Images, err)
		}
		broken = false
		if err := s.Set(t.Context(), n); err != nil || n.Status.Images[0].SizeBytes != 3 {
			t.Errorf("%v, %v", n.Status.Images, err)
		}
	})
}

func TestRuntimeVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v2.4.2": "cd://2.4.2", "1.6.20~ds1": "cd://1.6.20", "2.0.0-rc.1": "cd://2.0.0-rc.1", "1.2": "cd://1.2", "": "cd://Unknown", "none": "cd://Unknown",
	} {
		if got := runtimeVersion(runtime.Status{Name: "cd", Version: version}); got != want {
			t.Errorf("%q: %s, want %s", version, got, want)
		}
	}
}

func TestDeclaredFeatures(t *testing.T) {
	on := func(gates ...string) func(string) bool {
		return func(gate string) bool { return strings.Contains(" "+strings.Join(gates, " ")+" ", " "+gate+" ") }
	}
	got, err := DeclaredFeatures("v1.37.2", on("RestartAllContainersOnContainerExits", "ExtendWebSocketsToKubelet", "VolumeBindMountOptions", "Other"), nil)
	if diff := cmp.Diff([]string{"ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits"}, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	got, err = DeclaredFeatures("v1.37.2", on("VolumeBindMountOptions"), &runtime.Features{MountOptions: true})
	if diff := cmp.Diff([]string{"VolumeBindMountOptions"}, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := DeclaredFeatures("new", on(), nil); err == nil {
		t.Error("a version that is none is taken")
	}
}

// TestReportDelay: after a change the next report comes at another time.
func TestReportDelay(t *testing.T) {
	for range 100 {
		if d := reportDelay(true, time.Minute); d < -30*time.Second || d >= 30*time.Second {
			t.Fatalf("delay %v", d)
		}
	}
	if d := reportDelay(false, time.Minute); d != 0 {
		t.Errorf("at an even pace: %v", d)
	}
}
