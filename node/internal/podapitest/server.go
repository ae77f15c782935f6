// Package podapitest is a small API server of pods and nodes in memory, for the
// tests of node/apipods and node/status: it deletes as the real one does, takes
// strategic merge patches of statuses, keeps every copy that there ever was, and
// fails when it is told to. It is an http.RoundTripper, so that it works inside of
// testing/synctest.
//
//	api := podapitest.New()
//	api.PutNode("worker-1")
//	api.Create(pod)                          // as a controller or the scheduler
//	client := api.Client()                   // for the part under test
//	api.Delete("default", "web", 30)         // as a user
//	for _, write := range api.Writes() { ... }
package podapitest

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Server is the API server. Use [New]. Safe for concurrent use.
type Server struct {
	mu      sync.Mutex
	version uint64
	oldest  uint64 // watches from before are told that it is gone
	pods    map[string]*corev1.Pod
	nodes   map[string]*corev1.Node
	log     []Event
	watches map[*stream]bool
	writes  []Write
	refuse  func(*http.Request) (code int, reason string)
	drops   []string // status fields that it does not keep
	short   bool     // watches end at once
}

// Event is a pod as it was after one change.
type Event struct {
	Kind string // ADDED, MODIFIED, DELETED
	Pod  *corev1.Pod

	version uint64
}

// Write is one request that was to change something, and how it was answered.
type Write struct {
	Verb string // POST, PATCH, DELETE
	Path string
	Body string
	Code int
	At   time.Time
}

// New makes a server without pods and nodes.
func New() *Server {
	return &Server{version: 100, pods: map[string]*corev1.Pod{}, nodes: map[string]*corev1.Node{}, watches: map[*stream]bool{}}
}

// PutNode registers a node.
func (s *Server) PutNode(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.nodes[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("node-" + name), ResourceVersion: strconv.FormatUint(s.version, 10),
	}}
}

// Create makes a pod, and gives it a UID if it has none. It panics if there is
// one of its name.
func (s *Server) Create(pod *corev1.Pod) *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	made, err := s.create(pod)
	if err != nil {
		panic(err)
	}
	return made
}

func (s *Server) create(pod *corev1.Pod) (*corev1.Pod, error) {
	at := pod.Namespace + "/" + pod.Name
	if s.pods[at] != nil {
		return nil, fmt.Errorf("pod %s is there", at)
	}
	made := pod.DeepCopy()
	if made.UID == "" {
		made.UID = types.UID(fmt.Sprintf("uid-%d", s.version+1))
	}
	made.Generation, made.CreationTimestamp = 1, metav1.NewTime(time.Now().Truncate(time.Second))
	if made.Status.Phase == "" {
		made.Status.Phase = corev1.PodPending
	}
	s.pods[at] = made
	s.happened("ADDED", made)
	return made.DeepCopy(), nil
}

// Update changes a pod as somebody else than the node. A changed spec raises the
// generation.
func (s *Server) Update(namespace, name string, change func(*corev1.Pod)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.update(namespace+"/"+name, change)
}

func (s *Server) update(at string, change func(*corev1.Pod)) *corev1.Pod {
	old := s.pods[at]
	pod := old.DeepCopy()
	change(pod)
	if !reflect.DeepEqual(pod.Spec, old.Spec) || (old.DeletionTimestamp == nil) != (pod.DeletionTimestamp == nil) {
		pod.Generation++
	}
	s.pods[at] = pod
	s.happened("MODIFIED", pod)
	return pod
}

// Delete asks for the end of a pod as a user does: with a grace of 0 it is gone
// at once, unless a finalizer holds it.
func (s *Server) Delete(namespace, name string, grace int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delete(namespace+"/"+name, grace)
}

func (s *Server) delete(at string, grace int64) {
	pod := s.pods[at]
	if grace == 0 && len(pod.Finalizers) == 0 {
		delete(s.pods, at)
		s.happened("DELETED", pod.DeepCopy())
		return
	}
	s.update(at, func(pod *corev1.Pod) {
		if pod.DeletionTimestamp == nil || *pod.DeletionGracePeriodSeconds > grace {
			end := metav1.NewTime(time.Now().Truncate(time.Second).Add(time.Duration(grace) * time.Second))
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &end, &grace
		}
	})
}

// happened gives the pod a new version, notes it and tells watches.
func (s *Server) happened(kind string, pod *corev1.Pod) {
	s.version++
	pod.ResourceVersion = strconv.FormatUint(s.version, 10)
	e := Event{Kind: kind, Pod: pod.DeepCopy(), version: s.version}
	s.log = append(s.log, e)
	for w := range s.watches {
		w.push(e)
	}
}

// Pod is the pod of that name now; nil: there is none.
func (s *Server) Pod(namespace, name string) *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pods[namespace+"/"+name].DeepCopy()
}

// Events are all changes of pods so far.
func (s *Server) Events() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// Writes are all requests so far that were to change something.
func (s *Server) Writes() []Write {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.writes)
}

// Refuse answers requests by the function: an HTTP code and reason, or a code
// below 0 for no answer at all, or 0 to let the server answer. Nil: never.
func (s *Server) Refuse(by func(*http.Request) (code int, reason string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = by
}

// Away makes the server not answer any more, and ends watches; or come back.
func (s *Server) Away(away bool) {
	s.Refuse(nil)
	if away {
		s.Refuse(func(*http.Request) (int, string) { return -1, "connection refused" })
		s.EndWatches()
	}
}

// DropFields makes the server ignore these fields of statuses, as one does that
// is older than they are.
func (s *Server) DropFields(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drops = names
}

// EndWatchesAtOnce makes the server close every watch as soon as it is open.
func (s *Server) EndWatchesAtOnce(on bool) {
	s.mu.Lock()
	s.short = on
	s.mu.Unlock()
	s.EndWatches()
}

// EndWatches closes all watches, as the server does from time to time.
func (s *Server) EndWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches {
		w.end()
	}
	clear(s.watches)
}

// Forget makes all versions up to now too old for a watch.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.oldest = s.version
}
