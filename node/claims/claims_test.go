package claims

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
)

func newClaims(t *testing.T, a *api, change ...func(*Parts)) *Claims {
	t.Helper()
	parts := Parts{
		Core: a.client(corev1.SchemeGroupVersion), Storage: a.client(storagev1.SchemeGroupVersion), Node: a.seen,
	}
	for _, c := range change {
		c(&parts)
	}
	c, err := New(Config{NodeName: "n1"}, parts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func withoutAttach(a *api) {
	no := false
	a.objects["csidrivers/disk.example"] = &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{AttachRequired: &no, SELinuxMount: new(true)}}
}

func podWith(v corev1.Volume) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "pod-uid"}}
	pod.Spec.Volumes = []corev1.Volume{v}
	pod.Spec.Containers = []corev1.Container{{Name: "app", VolumeMounts: []corev1.VolumeMount{{Name: v.Name, MountPath: "/v"}}}}
	return pod
}

func claimed(name string) corev1.Volume {
	return corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name, ReadOnly: true}}}
}

func TestClaimedWithoutAttach(t *testing.T) {
	a := newAPI(t)
	withoutAttach(a)
	a.bind("db")
	c := newClaims(t, a)
	pod := podWith(claimed("db"))
	s, err := c.Claimed(t.Context(), pod, pod.Spec.Volumes[0])
	if err != nil || s.PersistentVolume.Name != "pv-db" || !s.ReadOnly || s.Attached || !s.SELinuxMount || s.Claim != (volume.Claim{Namespace: "ns", Name: "db"}) {
		t.Fatalf("%+v, %v", s, err)
	}
	if in, known := c.InUse(); len(in) != 0 || !known {
		t.Fatalf("in use: %v, %v", in, known)
	}
}

// Each error says what to look at, in the stock kubelet's words where there are any.
func TestClaimsThatCanNotBeUsed(t *testing.T) {
	now := metav1.Now()
	block := corev1.PersistentVolumeBlock
	type edit = func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume)
	for name, tc := range map[string]struct {
		edit  edit
		want  string
		final bool
	}{
		"being deleted": {func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.DeletionTimestamp = &now }, "can't start pod because PVC ns/db is being deleted", false},
		"not bound": {func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Status.Phase = corev1.ClaimPending
		}, "PVC is not bound", false},
		"another's":      {func(_ *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "other" }, `PV "pv-db" is not bound to this claim`, false},
		"nobody's":       {func(_ *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }, `PV "pv-db" is not bound to this claim`, false},
		"a device":       {func(_ *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) { pv.Spec.VolumeMode = &block }, "volume data has volumeMode Block, but is specified in volumeMounts", true},
		"elsewhere":      {affine("disk", "slow"), `storage node affinity check failed for volume "pv-db"`, false},
		"senseless rule": {affine("/", "x"), `the node affinity of PV "pv-db"`, false},
	} {
		a := newAPI(t)
		withoutAttach(a)
		a.bind("db", tc.edit)
		pod := podWith(claimed("db"))
		_, err := newClaims(t, a).Claimed(t.Context(), pod, pod.Spec.Volumes[0])
		if err == nil || !strings.Contains(err.Error(), tc.want) || reasoned.Fatal(err) != tc.final {
			t.Errorf("%s: %v", name, err)
		}
	}
	a := newAPI(t)
	pod := podWith(claimed("none"))
	if _, err := newClaims(t, a).Claimed(t.Context(), pod, pod.Spec.Volumes[0]); err == nil ||
		!strings.Contains(err.Error(), "error processing PVC ns/none: failed to fetch PVC from API server: persistentvolumeclaims") {
		t.Errorf("a claim that is not there: %v", err)
	}
}

func affine(key, value string) func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	return func(_ *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}},
		}}}}
	}
}

func TestEphemeralClaimBelongsToItsPod(t *testing.T) {
	a := newAPI(t)
	withoutAttach(a)
	pod := podWith(corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}})
	c := newClaims(t, a)
	a.bind("pod-scratch")
	if _, err := c.Claimed(t.Context(), pod, pod.Spec.Volumes[0]); err == nil || !strings.Contains(err.Error(), "pod is not owner") {
		t.Fatalf("somebody's claim of that name: %v", err)
	}
	yes := true
	a.bind("pod-scratch", func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "pod", UID: pod.UID, Controller: &yes}}
	})
	if s, err := c.Claimed(t.Context(), pod, pod.Spec.Volumes[0]); err != nil || s.PersistentVolume.Name != "pv-pod-scratch" {
		t.Fatalf("%+v, %v", s, err)
	}
}

// Waiting for an attach takes no tries and no back-off, however long it takes,
// and ends with the change of the node.
func TestAttachIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t)
		a.bind("db")
		kicks := 0
		c := newClaims(t, a, func(p *Parts) { p.Kick = func() { kicks++ } })
		pod := podWith(claimed("db"))
		type result struct {
			s   volume.Source
			err error
		}
		done := make(chan result, 1)
		go func() {
			s, err := c.Claimed(t.Context(), pod, pod.Spec.Volumes[0])
			done <- result{s, err}
		}()
		synctest.Wait()
		want := []corev1.UniqueVolumeName{"kubernetes.io/csi/disk.example^h-db"}
		if in, _ := c.InUse(); !slices.Equal(in, want) || kicks != 1 {
			t.Fatalf("in use: %v, kicked %d times", in, kicks)
		}
		<-time.After(110 * time.Second)
		a.do(func() { a.node.Status.VolumesInUse = want })
		c.NodeChanged() // in use, but not attached
		synctest.Wait()
		select {
		case r := <-done:
			t.Fatalf("ended before the attach: %+v", r)
		default:
		}
		before := time.Now()
		a.attach("db")
		c.NodeChanged()
		r := <-done
		if r.err != nil || !r.s.Attached || r.s.PublishContext["device"] != "/dev/x" || r.s.AttachmentID != attachmentName("h-db", "disk.example", "n1") {
			t.Fatalf("%+v, %v", r.s, r.err)
		}
		if took := time.Since(before); took != 0 {
			t.Errorf("went on %v after the attach", took)
		}
		for call, n := range a.calls {
			if n != 1 {
				t.Errorf("%d requests for %s", n, call)
			}
		}
		c.Release(pod.UID)
		if in, _ := c.InUse(); len(in) != 0 || kicks != 2 {
			t.Errorf("in use after the pod's end: %v, kicked %d times", in, kicks)
		}
	})
}

func TestAttachThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t)
		a.bind("db")
		c := newClaims(t, a)
		pod := podWith(claimed("db"))
		began := time.Now()
		_, err := c.Claimed(t.Context(), pod, pod.Spec.Volumes[0])
		if err == nil || !strings.Contains(err.Error(), "has not been attached to the node yet") || time.Since(began) != attachTime || reasoned.RetryAfter(err, time.Minute) != attachRetry {
			t.Fatalf("after %v: %v, again after %v", time.Since(began), err, reasoned.RetryAfter(err, time.Minute))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Claimed(ctx, pod, pod.Spec.Volumes[0]); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("with a context that ended: %v", err)
		}
	})
}

// A restart does not make volumes look unused, and what can not be read is not
// told as unused.
func TestInUseAfterRestart(t *testing.T) {
	recorded := func(handle string, attached bool) volume.Recorded {
		pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example", VolumeHandle: handle}}}}
		return volume.Recorded{UID: "u1", Source: volume.Source{PersistentVolume: pv, Attached: attached}}
	}
	records := []volume.Recorded{recorded("a", true), recorded("b", false), recorded("a", true)}
	var broken error
	c := newClaims(t, newAPI(t), func(p *Parts) {
		p.Recorded = func() ([]volume.Recorded, error) { return records, broken }
	})
	if in, known := c.InUse(); !slices.Equal(in, []corev1.UniqueVolumeName{"kubernetes.io/csi/disk.example^a"}) || !known {
		t.Fatalf("in use: %v, %v", in, known)
	}
	broken = errors.New("input/output error")
	if _, known := c.InUse(); known {
		t.Fatal("known although the records can not be read")
	}
	records, broken = nil, nil // an orphan was taken away
	if in, known := c.InUse(); len(in) != 0 || !known {
		t.Fatalf("in use: %v, %v", in, known)
	}
}

// The authorizer may hear of a pod's binding after the node.
func TestForbiddenAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t)
		withoutAttach(a)
		a.bind("db")
		path := "persistentvolumeclaims/ns/db"
		a.fail[path] = apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "db", errors.New("no relationship found"))
		time.AfterFunc(time.Second, func() { a.do(func() { delete(a.fail, path) }) })
		c := newClaims(t, a)
		pod := podWith(claimed("db"))
		if _, err := c.Claimed(t.Context(), pod, pod.Spec.Volumes[0]); err != nil {
			t.Fatal(err)
		}
		a.do(func() { a.fail[path] = apierrors.NewForbidden(schema.GroupResource{}, "db", errors.New("never")) })
		if _, err := c.Claimed(t.Context(), pod, pod.Spec.Volumes[0]); !apierrors.IsForbidden(err) {
			t.Fatal(err)
		}
	})
}

func TestNewChecks(t *testing.T) {
	a := newAPI(t)
	core := a.client(corev1.SchemeGroupVersion)
	for want, tc := range map[string]struct {
		cfg   Config
		parts Parts
	}{
		"NodeName": {Config{}, Parts{Core: core, Node: a.seen}},
		"Core":     {Config{NodeName: "n"}, Parts{Node: a.seen}},
		"Node":     {Config{NodeName: "n"}, Parts{Core: core}},
	} {
		if _, err := New(tc.cfg, tc.parts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// Who waits is told what went wrong with the attach, and whoever keeps the limits
// of the node hears that there is no room.
func TestAttachFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t)
		a.bind("db")
		code := int32(8)
		id := attachmentName("h-db", "disk.example", "n1")
		a.objects["volumeattachments/"+id] = &storagev1.VolumeAttachment{Status: storagev1.VolumeAttachmentStatus{
			AttachError: &storagev1.VolumeError{Message: "16 volumes are the most", ErrorCode: &code}}}
		full := ""
		c := newClaims(t, a, func(p *Parts) { p.Exhausted = func(driver string) { full = driver } })
		pod := podWith(claimed("db"))
		_, err := c.Claimed(t.Context(), pod, pod.Spec.Volumes[0])
		if err == nil || !strings.Contains(err.Error(), "16 volumes are the most") || full != "disk.example" {
			t.Errorf("error %v, full %q", err, full)
		}
	})
}
