package csinode

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"nodekit.dev/internal/kubeclient/kubeclienttest"
)

// world is an API server in memory, and a node with drivers.
type world struct {
	mu        sync.Mutex
	node      *corev1.Node
	csiNode   *storagev1.CSINode
	objects   map[string]*storagev1.CSIDriver
	writes    []string
	reads     int
	conflicts int
	away      bool

	drivers   []Driver
	changed   chan struct{}
	refreshed []time.Duration
	began     time.Time
}

func newWorld() *world {
	return &world{
		node:    &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "node-uid", Labels: map[string]string{}}},
		objects: map[string]*storagev1.CSIDriver{}, changed: make(chan struct{}), began: time.Now(),
	}
}

func (w *world) keeper(t *testing.T) *Keeper {
	t.Helper()
	storage := kubeclienttest.Client(storagev1.SchemeGroupVersion, w, storagev1.AddToScheme)
	k, err := New(Config{NodeName: "n1"}, Parts{
		Core: kubeclienttest.Client(corev1.SchemeGroupVersion, w, corev1.AddToScheme), Storage: storage,
		Node: func() *corev1.Node { w.mu.Lock(); defer w.mu.Unlock(); return w.node.DeepCopy() }, Drivers: w, Objects: NewObjects(storage),
	})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (w *world) run(t *testing.T) *Keeper {
	t.Helper()
	k := w.keeper(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- k.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return k
}

func (w *world) Registered() []Driver {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.drivers
}

func (w *world) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

func (w *world) Refresh(context.Context, string) error {
	w.mu.Lock()
	w.refreshed = append(w.refreshed, time.Since(w.began))
	drivers := append([]Driver(nil), w.drivers...)
	w.mu.Unlock()
	drivers[0].MaxVolumes++
	w.have(drivers...)
	return nil
}

func (w *world) have(drivers ...Driver) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drivers = drivers
	close(w.changed)
	w.changed = make(chan struct{})
}

// RoundTrip is the API server.
func (w *world) RoundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away {
		return nil, errors.New("connection refused")
	}
	body := []byte{}
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	if req.Method != http.MethodGet {
		w.writes = append(w.writes, req.Method+" "+req.URL.Path)
	}
	switch path := req.URL.Path; {
	case strings.HasPrefix(path, "/api/v1/nodes/n1"):
		if req.Method == http.MethodPatch {
			var patch struct {
				Metadata struct {
					Labels      map[string]string
					Annotations map[string]*string
				}
			}
			if err := json.Unmarshal(body, &patch); err != nil {
				return nil, err
			}
			w.node = w.node.DeepCopy()
			for key, value := range patch.Metadata.Labels {
				w.node.Labels[key] = value
			}
			for key, value := range patch.Metadata.Annotations {
				metav1.SetMetaDataAnnotation(&w.node.ObjectMeta, key, "")
				if delete(w.node.Annotations, key); value != nil {
					w.node.Annotations[key] = *value
				}
			}
		}
		return answer(http.StatusOK, w.node)
	case strings.HasPrefix(path, "/apis/storage.k8s.io/v1/csidrivers/"):
		w.reads++
		if object := w.objects[strings.TrimPrefix(path, "/apis/storage.k8s.io/v1/csidrivers/")]; object != nil {
			return answer(http.StatusOK, object)
		}
		return failure(apierrors.NewNotFound(schema.GroupResource{Resource: "csidrivers"}, path))
	case req.Method == http.MethodGet && w.csiNode == nil:
		return failure(apierrors.NewNotFound(schema.GroupResource{Resource: "csinodes"}, path))
	case req.Method == http.MethodGet:
		return answer(http.StatusOK, w.csiNode)
	case w.conflicts > 0:
		w.conflicts--
		return failure(apierrors.NewConflict(schema.GroupResource{Resource: "csinodes"}, path, errors.New("changed")))
	}
	w.csiNode = &storagev1.CSINode{}
	if err := json.Unmarshal(body, w.csiNode); err != nil {
		return nil, err
	}
	return answer(http.StatusOK, w.csiNode)
}

func failure(err *apierrors.StatusError) (*http.Response, error) {
	err.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return answer(int(err.ErrStatus.Code), &err.ErrStatus)
}

func answer(code int, object any) (*http.Response, error) {
	body, err := json.Marshal(object)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}, err
}

// spec is what the CSINode says, in short.
func (w *world) spec() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.csiNode == nil {
		return ""
	}
	var out []string
	for _, d := range w.csiNode.Spec.Drivers {
		text := d.Name + "=" + d.NodeID + " " + strings.Join(d.TopologyKeys, ",")
		if d.Allocatable != nil {
			text += " " + string(rune('0'+*d.Allocatable.Count))
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func (w *world) annotation() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.node.Annotations[nodeIDs]
}

func disk() Driver {
	return Driver{Name: "disk.example", NodeID: "i-1", MaxVolumes: 5, Topology: map[string]string{"disk.example/zone": "a"}}
}

func TestDriversComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.csiNode = &storagev1.CSINode{Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: "early.example", NodeID: "e"}}}}
		w.node.Annotations = map[string]string{nodeIDs: `{"early.example":"e"}`}
		w.conflicts = 2
		w.run(t)
		synctest.Wait()
		if len(w.writes) != 0 {
			t.Fatalf("wrote %v before a driver came", w.writes)
		}
		w.have(disk(), Driver{Name: "other.example", NodeID: "o"})
		<-time.After(time.Second)
		if got := w.spec(); got != "disk.example=i-1 disk.example/zone 5; early.example=e ; other.example=o " {
			t.Errorf("drivers %q", got)
		}
		if got := w.annotation(); got != `{"disk.example":"i-1","early.example":"e","other.example":"o"}` || w.node.Labels["disk.example/zone"] != "a" {
			t.Errorf("annotation %s, labels %v", got, w.node.Labels)
		}
		writes := len(w.writes)
		w.have(disk(), Driver{Name: "other.example", NodeID: "o"})
		<-time.After(time.Second)
		if len(w.writes) != writes {
			t.Errorf("wrote again: %v", w.writes[writes:])
		}
		w.have(disk())
		<-time.After(time.Second)
		if got := w.spec(); got != "disk.example=i-1 disk.example/zone 5; early.example=e " || w.annotation() != `{"disk.example":"i-1","early.example":"e"}` {
			t.Errorf("drivers %q, %s", got, w.annotation())
		}
	})
}

// A new CSINode goes with its Node; an API server that is away, and a Node that
// is not there yet, are waited for; a label that says otherwise keeps its driver
// out.
func TestFailuresAndCollisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.away, w.node.UID = true, ""
		w.node.Labels["zone"] = "b"
		w.run(t)
		w.have(disk(), Driver{Name: "off.example", NodeID: "o", Topology: map[string]string{"zone": "a"}})
		<-time.After(time.Minute)
		w.mu.Lock()
		w.away = false
		w.node.UID = "node-uid"
		w.mu.Unlock()
		<-time.After(time.Minute)
		if got := w.spec(); got != "disk.example=i-1 disk.example/zone 5" || w.node.Labels["zone"] != "b" {
			t.Errorf("drivers %q, labels %v", got, w.node.Labels)
		}
		if owners := w.csiNode.OwnerReferences; len(owners) != 1 || owners[0].UID != "node-uid" || owners[0].Kind != "Node" {
			t.Errorf("owners %+v", owners)
		}
	})
}

// The limit is asked for anew as often as the driver's object says, and at once
// when the node turned out to be full.
func TestLimitsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		period := int64(60)
		w.objects["disk.example"] = &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{NodeAllocatableUpdatePeriodSeconds: &period}}
		k := w.run(t)
		w.have(disk())
		<-time.After(90 * time.Second)
		if got := w.spec(); got != "disk.example=i-1 disk.example/zone 6" {
			t.Errorf("after a period: %q", got)
		}
		k.Exhausted("disk.example")
		k.Exhausted("unknown.example")
		<-time.After(time.Second)
		if got := w.spec(); got != "disk.example=i-1 disk.example/zone 7" || len(w.refreshed) != 2 {
			t.Errorf("after it was full: %q, asked at %v", got, w.refreshed)
		}
	})
}

func TestObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		o := NewObjects(kubeclienttest.Client(storagev1.SchemeGroupVersion, w, storagev1.AddToScheme))
		for range 3 {
			var none interface{ NotFound() bool }
			if _, err := o.CSIDriver(t.Context(), "d"); !apierrors.IsNotFound(err) || !errors.As(err, &none) || !none.NotFound() {
				t.Fatalf("error %v", err)
			}
		}
		if w.reads != 1 {
			t.Errorf("read %d times", w.reads)
		}
		w.objects["d"] = &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "d"}}
		<-time.After(objectLife)
		if got, err := o.CSIDriver(t.Context(), "d"); err != nil || got.Name != "d" {
			t.Errorf("%v, %v", got, err)
		}
		w.away = true
		<-time.After(objectLife)
		if got, err := o.CSIDriver(t.Context(), "d"); err != nil || got.Name != "d" {
			t.Errorf("while the server is away: %v, %v", got, err)
		}
		if _, err := o.CSIDriver(t.Context(), "e"); err == nil || apierrors.IsNotFound(err) {
			t.Errorf("error %v", err)
		}
	})
}

func TestNew(t *testing.T) {
	if _, err := New(Config{}, Parts{}); err == nil {
		t.Error("no name")
	}
	if _, err := New(Config{NodeName: "n1"}, Parts{}); err == nil {
		t.Error("no parts")
	}
}
