package claims

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"nodekit.dev/internal/kubeclient/kubeclienttest"
)

// api is an API server in memory. It is an http.RoundTripper, so that it runs in
// a synctest bubble.
type api struct {
	t testing.TB

	mu      sync.Mutex
	objects map[string]any // by RESOURCE/[NAMESPACE/]NAME
	fail    map[string]error
	calls   map[string]int
	node    *corev1.Node
}

func newAPI(t testing.TB) *api {
	return &api{
		t: t, objects: map[string]any{}, fail: map[string]error{}, calls: map[string]int{},
		node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"disk": "fast"}}},
	}
}

func (a *api) client(gv schema.GroupVersion) rest.Interface {
	return kubeclienttest.Client(gv, a, corev1.AddToScheme, storagev1.AddToScheme)
}

// RoundTrip answers a GET.
func (a *api) RoundTrip(req *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	path := strings.TrimPrefix(strings.TrimPrefix(req.URL.Path, "/api/v1/"), "/apis/storage.k8s.io/v1/")
	if rest, ok := strings.CutPrefix(path, "namespaces/"); ok {
		namespace, rest, _ := strings.Cut(rest, "/")
		resource, name, _ := strings.Cut(rest, "/")
		path = resource + "/" + namespace + "/" + name
	}
	a.calls[path]++
	if err := a.fail[path]; err != nil {
		return reply(err)
	}
	object, ok := a.objects[path]
	if !ok {
		return reply(apierrors.NewNotFound(schema.GroupResource{Resource: strings.Split(path, "/")[0]}, path))
	}
	return answer(http.StatusOK, object)
}

func reply(err error) (*http.Response, error) {
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		return nil, err
	}
	s := status.Status()
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return answer(int(s.Code), &s)
}

func answer(code int, object any) (*http.Response, error) {
	body, err := json.Marshal(object)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}, err
}

func (a *api) do(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

func (a *api) seen(context.Context) (*corev1.Node, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.node.DeepCopy(), nil
}

// bind adds a claim that is bound to a volume of a CSI driver.
func (a *api) bind(claim string, change ...func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume)) {
	pvc := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: claim, UID: "uid-of-" + "claim"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv-" + claim},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-" + claim},
		Spec: corev1.PersistentVolumeSpec{
			ClaimRef:               &corev1.ObjectReference{Namespace: "ns", Name: claim, UID: pvc.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example", VolumeHandle: "h-" + claim}},
		},
	}
	for _, c := range change {
		c(pvc, pv)
	}
	a.do(func() {
		a.objects["persistentvolumeclaims/ns/"+claim] = pvc
		a.objects["persistentvolumes/"+pvc.Spec.VolumeName] = pv
	})
}

// attach does what the attach-detach controller and the node's status do.
func (a *api) attach(claim string) {
	name := corev1.UniqueVolumeName("kubernetes.io/csi/disk.example^h-" + claim)
	id := attachmentName("h-"+claim, "disk.example", "n1")
	a.do(func() {
		a.objects["volumeattachments/"+id] = &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: id},
			Status:     storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{"device": "/dev/x"}},
		}
		a.node.Status.VolumesInUse = append(a.node.Status.VolumesInUse, name)
		a.node.Status.VolumesAttached = append(a.node.Status.VolumesAttached, corev1.AttachedVolume{Name: name})
	})
}
