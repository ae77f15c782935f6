package follow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/test/cluster/follow"
)

// server is a list of pods that can be watched.
type server struct {
	mu      sync.Mutex
	pods    map[string]corev1.Pod
	version int
	watches []chan string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") == "" {
		s.mu.Lock()
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		list.ResourceVersion = fmt.Sprint(s.version)
		for _, p := range s.pods {
			list.Items = append(list.Items, p)
		}
		s.mu.Unlock()
		_ = json.NewEncoder(w).Encode(list)
		return
	}
	events := make(chan string, 100)
	s.mu.Lock()
	s.watches = append(s.watches, events)
	s.mu.Unlock()
	w.(http.Flusher).Flush()
	for {
		select {
		case e, open := <-events:
			if !open {
				return
			}
			fmt.Fprintln(w, e)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// put makes or changes a pod; an empty phase deletes it. Silent changes are
// not told to watches.
func (s *server) put(name string, phase corev1.PodPhase, silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	_, known := s.pods[name]
	p := corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), ResourceVersion: fmt.Sprint(s.version)},
		Status:     corev1.PodStatus{Phase: phase},
	}
	kind := "MODIFIED"
	switch {
	case phase == "":
		kind = "DELETED"
		delete(s.pods, name)
	case !known:
		kind = "ADDED"
		fallthrough
	default:
		s.pods[name] = p
	}
	object, _ := json.Marshal(p)
	for _, w := range s.watches {
		if !silent {
			w <- fmt.Sprintf(`{"type":%q,"object":%s}`, kind, object)
		}
	}
}

// hangUp ends all watches.
func (s *server) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		close(w)
	}
	s.watches = nil
}

func (s *server) watched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.watches) > 0
}

func TestFollower(t *testing.T) {
	api := &server{pods: map[string]corev1.Pod{}}
	api.put("first", corev1.PodPending, false)
	web := httptest.NewServer(api)
	t.Cleanup(web.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":"` + web.URL + `"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := follow.Client(kubeconfig, corev1.SchemeGroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	var changes []string
	pods := follow.New(client, "pods", func(c follow.Change[*corev1.Pod]) {
		was := "new"
		if c.Known {
			was = string(c.Old.Status.Phase)
		}
		changes = append(changes, fmt.Sprintf("%s %s>%s gone=%v", c.New.Name, was, c.New.Status.Phase, c.Gone))
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	done := make(chan struct{})
	go func() { defer close(done); pods.Run(ctx) }()

	until(ctx, t, pods, "first=Pending")
	waitFor(ctx, t, api.watched)
	api.put("first", corev1.PodRunning, false)
	api.put("second", corev1.PodPending, false)
	until(ctx, t, pods, "first=Running second=Pending")
	// What happens while the watch is broken is found by the next list.
	api.put("first", "", true)
	api.put("second", corev1.PodRunning, true)
	api.put("third", corev1.PodRunning, true)
	api.hangUp()
	until(ctx, t, pods, "second=Running third=Running")
	waitFor(ctx, t, api.watched)
	api.put("third", "", false)
	until(ctx, t, pods, "second=Running")
	cancel()
	<-done

	short, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	err = pods.Until(short, func([]*corev1.Pod) error { return fmt.Errorf("never content") })
	if err == nil || !strings.Contains(err.Error(), "never content") {
		t.Errorf("Until: %v", err)
	}
	want := map[string]bool{
		"first new>Pending gone=false": true, "first Pending>Running gone=false": true, "second new>Pending gone=false": true,
		"first Running>Running gone=true": true, "second Pending>Running gone=false": true, "third new>Running gone=false": true,
	}
	for _, c := range changes {
		delete(want, c)
	}
	if len(want) > 0 || len(changes) != 7 {
		t.Errorf("the hook saw %q, and not %v", changes, want)
	}
}

func until(ctx context.Context, t *testing.T, pods *follow.Follower[*corev1.Pod], want string) {
	t.Helper()
	err := pods.Until(ctx, func(all []*corev1.Pod) error {
		var got []string
		for _, p := range all {
			got = append(got, p.Name+"="+string(p.Status.Phase))
		}
		if text := strings.Join(got, " "); text != want {
			return fmt.Errorf("there is %q, want %q", text, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func waitFor(ctx context.Context, t *testing.T, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
	}
}
