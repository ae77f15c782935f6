package status

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"nodekit.dev/internal/backoff"
	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
)

// Writer keeps the API server's pods as the node says they are. Use New. It is
// a node.StatusSink and takes the copies of node/apipods. No method but Run
// blocks, and all may be called at any time, also before Run.
type Writer struct {
	cfg   Config
	parts Parts
	log   *slog.Logger
	wake  chan struct{} // holds one token

	mu      sync.Mutex
	node    Node
	items   map[key]*item
	queue   queue
	waiting map[*item]struct{} // after a failure, until it.due
	synced  bool               // all pods that the API server has were told once
	ready   bool               // every source of pods has reported
}

// New checks and allocates; nothing happens before Run.
func New(cfg Config, parts Parts) (*Writer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("status writer: config: %w", err)
	}
	if parts.API == nil {
		return nil, errors.New("status writer: a REST client of the core group is required")
	}
	log := parts.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Writer{
		cfg: cfg, parts: parts, log: log,
		wake: make(chan struct{}, 1), items: map[key]*item{}, waiting: map[*item]struct{}{},
	}, nil
}

// Attach gives the writer its node, once and before Run: the node must have been
// made before, with the writer as one of its sinks.
func (w *Writer) Attach(n Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.node = n
}

// key names an item: an API pod by its UID, a mirror by its name.
type key struct {
	uid             types.UID // empty for a mirror
	namespace, name string
}

func (k key) mirror() bool { return k.uid == "" }

// item is one pod of the API server, or one name of static pods and mirrors.
type item struct {
	key key
	// says is what the node said last of each static pod of the name, oldest
	// first; of an API pod there is one at most.
	says []node.StatusUpdate
	has  *corev1.Pod
	// since is when the node said something first that is not written yet.
	since time.Time

	deleted  types.UID
	reminded *corev1.Pod
	inVain   []byte

	queued bool // in the queue
	flying bool // a step is being decided or made
	dirty  bool // there is news since it began,
	urgent bool // for which somebody may wait
	failed backoff.State
	due    time.Time // of the next try after a failure, for those that wait
}

func (it *item) changed() {
	if it.since.IsZero() {
		it.since = time.Now()
	}
}

// said is the pod that counts: of several static pods of one name, the first
// that is there still. The others wait for it to go.
func (it *item) said() *node.StatusUpdate {
	if len(it.says) == 0 {
		return nil
	}
	return &it.says[0]
}

// PodStatus takes what the node says of a pod now.
func (w *Writer) PodStatus(update node.StatusUpdate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if update.Pod == nil || update.Static {
		w.staticSaid(update)
		return
	}
	it := w.item(key{types.UID(update.UID), update.Namespace, update.Name})
	urgent := it.said() == nil || urgent(it.said(), &update)
	it.says = []node.StatusUpdate{update}
	it.changed()
	w.news(it, urgent)
}

// staticSaid takes what the node says of a static pod, or of one whose manifest
// is gone: that has no status to tell, but may have a mirror.
func (w *Writer) staticSaid(update node.StatusUpdate) {
	k := key{"", update.Namespace, update.Name}
	if update.Pod == nil && w.items[k] == nil {
		return
	}
	it := w.item(k)
	i := slices.IndexFunc(it.says, func(s node.StatusUpdate) bool { return s.UID == update.UID })
	switch {
	case update.Phase == lifecycle.Finished && i >= 0:
		it.says = slices.Delete(it.says, i, i+1)
	case update.Phase == lifecycle.Finished || update.Pod == nil:
	case i >= 0:
		it.says[i] = update
	default:
		it.says = append(it.says, update)
	}
	it.changed()
	w.news(it, update.Phase == lifecycle.Finished)
}

// urgent says that somebody may wait for the change.
func urgent(old, update *node.StatusUpdate) bool {
	return old.Phase != update.Phase && update.Phase == lifecycle.Finished ||
		old.Status.Phase != update.Status.Phase ||
		isReady(&old.Status) != isReady(&update.Status)
}

func isReady(s *corev1.PodStatus) bool {
	c := find(s.Conditions, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// PodSeen takes the API server's newest copy of a pod.
func (w *Writer) PodSeen(pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	it := w.item(keyOf(pod))
	if older(pod, it.has) || (it.key.mirror() && pod.UID == it.deleted) {
		return
	}
	it.has = pod
	w.news(it, pod.DeletionTimestamp != nil)
}

// PodGone takes that the API server has the pod no more.
func (w *Writer) PodGone(pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	it := w.items[keyOf(pod)]
	if it == nil || it.has == nil || it.has.UID != pod.UID {
		return
	}
	it.has = nil
	w.news(it, true)
}

func keyOf(pod *corev1.Pod) key {
	if isMirror(pod) {
		return key{"", pod.Namespace, pod.Name}
	}
	return key{pod.UID, pod.Namespace, pod.Name}
}

// older says that a copy is from before the one at hand.
func older(pod, has *corev1.Pod) bool {
	if has == nil || has.UID != pod.UID {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(pod.ResourceVersion, has.ResourceVersion)
	return err == nil && order < 0
}

// InSync takes that the API server answers and that all pods it has were told.
// What failed is tried again at once, and mirror pods that are not there are
// made from now on.
func (w *Writer) InSync() {
	w.mu.Lock()
	first := !w.synced
	w.synced = true
	w.mu.Unlock()
	if first {
		w.lookAtMirrors()
	}
	w.Kick()
}

// Kick tries again at once what failed: the node was registered, say, without
// which there are no mirror pods.
func (w *Writer) Kick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for it := range w.waiting {
		w.enqueue(it, false)
	}
}

// lookAtMirrors looks at all names of static pods and mirrors.
func (w *Writer) lookAtMirrors() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, it := range w.items {
		if it.key.mirror() {
			w.news(it, false)
		}
	}
}

// item finds or makes an item.
func (w *Writer) item(k key) *item {
	it := w.items[k]
	if it == nil {
		it = &item{key: k}
		w.items[k] = it
	}
	return it
}

// news makes the item be looked at, or forgets it when nothing is left of it.
// While it waits after a failure, news waits with it.
func (w *Writer) news(it *item, urgent bool) {
	_, waits := w.waiting[it]
	switch {
	case it.flying:
		it.dirty, it.urgent = true, it.urgent || urgent
	case it.over():
		w.forget(it)
	case !waits:
		w.enqueue(it, urgent)
	}
}

// over says that neither side has anything of it any more.
func (it *item) over() bool {
	said := it.said()
	return it.has == nil && (said == nil || said.Phase == lifecycle.Finished)
}

func (w *Writer) forget(it *item) {
	delete(w.items, it.key)
	delete(w.waiting, it)
	w.queue.drop(it)
}

// enqueue puts the item in line.
func (w *Writer) enqueue(it *item, urgent bool) {
	delete(w.waiting, it)
	w.queue.put(it, urgent)
	w.poke()
}

func (w *Writer) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
