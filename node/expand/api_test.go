package expand

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"nodekit.dev/internal/kubeclient/kubeclienttest"
	"nodekit.dev/volume"
)

// world is an API server in memory with one claim and its volume, and a node
// that has the volume mounted.
type world struct {
	t testing.TB

	mu        sync.Mutex
	claim     *corev1.PersistentVolumeClaim
	pv        *corev1.PersistentVolume
	statuses  []corev1.ClaimResourceStatus // that the claim had
	mayWatch  bool
	watchers  []*io.PipeWriter
	gets      int
	conflicts int // how many patches shall fail

	uses   []volume.Recorded
	size   int64 // on the node
	grows  bool
	calls  []time.Time
	fail   []error // of the next calls
	events []Event
	grown  []Growth
}

func newWorld(t testing.TB, claim *corev1.PersistentVolumeClaim) *world {
	w := &world{t: t, claim: claim, size: gi, grows: true, mayWatch: true}
	w.pv = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}
	w.pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: quantity(2 * gi)}
	w.uses = []volume.Recorded{{UID: "pod-uid", Source: volume.Source{
		Volume: corev1.Volume{Name: "data"}, PersistentVolume: w.pv, Claim: volume.Claim{Namespace: "ns", Name: "db"},
	}}}
	return w
}

// start runs an expander until the end of the test.
func (w *world) start() *Expander {
	w.t.Helper()
	cfg := Default()
	cfg.NodeName = "n1"
	cfg.Observer.Grew = func(g Growth) { w.do(func() { w.grown = append(w.grown, g) }) }
	e, err := New(cfg, Parts{
		Core: kubeclienttest.Client(corev1.SchemeGroupVersion, w, corev1.AddToScheme), Grower: w,
		Volumes: func() (all []volume.Recorded, err error) { w.do(func() { all = w.uses }); return all, nil },
		Event:   func(e Event) { w.do(func() { w.events = append(w.events, e) }) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		w.do(func() {
			for _, to := range w.watchers {
				_ = to.Close()
			}
		})
		<-done
	})
	return e
}

func (w *world) do(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// change is what the controllers do to the claim.
func (w *world) change(do func(*corev1.PersistentVolumeClaim)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.claim = w.claim.DeepCopy()
	do(w.claim)
	w.wrote()
}

// wrote gives the claim a version and tells who watches. The lock is held.
func (w *world) wrote() {
	version, _ := strconv.Atoi(w.claim.ResourceVersion)
	w.claim.ResourceVersion = strconv.Itoa(version + 1)
	w.statuses = append(w.statuses, status(w.claim))
	for _, to := range w.watchers {
		go w.event(to, "MODIFIED", w.claim)
	}
}

func (w *world) event(to io.Writer, kind string, claim *corev1.PersistentVolumeClaim) {
	claim = claim.DeepCopy()
	claim.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}
	_ = json.NewEncoder(to).Encode(map[string]any{"type": kind, "object": claim})
}

// RoundTrip is the API server.
func (w *world) RoundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	path := strings.TrimPrefix(req.URL.Path, "/api/v1/")
	switch {
	case req.URL.Query().Get("watch") != "":
		if !w.mayWatch {
			return w.reply(apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "db", nil))
		}
		from, to := io.Pipe()
		w.watchers = append(w.watchers, to)
		go w.event(to, "ADDED", w.claim)
		go func() { <-req.Context().Done(); _ = from.CloseWithError(req.Context().Err()) }()
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: from}, nil
	case req.Method == http.MethodPatch && path == "namespaces/ns/persistentvolumeclaims/db/status":
		return w.patch(req)
	case path == "namespaces/ns/persistentvolumeclaims/db":
		w.gets++
		return w.answer(http.StatusOK, w.claim)
	case path == "persistentvolumes/pv":
		return w.answer(http.StatusOK, w.pv)
	}
	return w.reply(apierrors.NewNotFound(schema.GroupResource{}, path))
}

func (w *world) patch(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	var meta struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(body, &meta); err != nil {
		return nil, err
	}
	if v := meta.Metadata.ResourceVersion; w.conflicts > 0 || v != "" && v != w.claim.ResourceVersion {
		w.conflicts--
		return w.reply(apierrors.NewConflict(schema.GroupResource{}, "db", nil))
	}
	w.claim = w.claim.DeepCopy()
	if err := merge(&w.claim.Status, body); err != nil {
		return nil, err
	}
	w.wrote()
	return w.answer(http.StatusOK, w.claim)
}

// merge does what a strategic merge patch does to the fields that the expander
// writes.
func merge(s *corev1.PersistentVolumeClaimStatus, body []byte) error {
	var change struct {
		Status struct {
			Capacity                  corev1.ResourceList
			AllocatedResourceStatuses map[corev1.ResourceName]*corev1.ClaimResourceStatus
			Conditions                []struct {
				corev1.PersistentVolumeClaimCondition

				Patch string `json:"$patch"`
			}
		}
	}
	if err := json.Unmarshal(body, &change); err != nil {
		return err
	}
	for name, size := range change.Status.Capacity {
		s.Capacity[name] = size
	}
	for name, to := range change.Status.AllocatedResourceStatuses {
		if delete(s.AllocatedResourceStatuses, name); to != nil {
			s.AllocatedResourceStatuses[name] = *to
		}
	}
	for _, c := range change.Status.Conditions {
		s.Conditions = slices.DeleteFunc(s.Conditions, func(old corev1.PersistentVolumeClaimCondition) bool { return old.Type == c.Type })
		if c.Patch != "delete" {
			s.Conditions = append(s.Conditions, c.PersistentVolumeClaimCondition)
		}
	}
	return nil
}

func (w *world) reply(err *apierrors.StatusError) (*http.Response, error) {
	s := err.Status()
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return w.answer(int(s.Code), &s)
}

func (w *world) answer(code int, object any) (*http.Response, error) {
	body, err := json.Marshal(object)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}, err
}

// Grows, SizeOf and Expand are the node.
func (w *world) Grows(volume.Recorded) (grows bool) {
	w.do(func() { grows = w.grows })
	return grows
}

func (w *world) SizeOf(volume.Recorded) (size int64, err error) {
	w.do(func() { size = w.size })
	return size, nil
}

func (w *world) Expand(_ context.Context, v volume.Recorded, size int64) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v.ReadOnly {
		w.t.Error("a read-only volume was grown")
	}
	w.calls = append(w.calls, time.Now())
	if len(w.fail) > 0 {
		err := w.fail[0]
		w.fail = w.fail[1:]
		return 0, err
	}
	w.size = size
	return size, nil
}
