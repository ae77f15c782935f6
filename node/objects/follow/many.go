package follow

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/node/objects"
)

// ManyOptions say what a [Many] follows and how.
type ManyOptions[T Object] struct {
	Source
	// NewList makes an empty list to decode into, and Items takes it apart.
	NewList func() List
	Items   func(List) []T
	// Trim takes away what nobody reads, to save memory; nil: nothing.
	Trim func(T)
	// Changed is called with an object that came, changed or went, and after
	// the first list with every object in it. It must not block, and is called
	// by Run alone; nil: nobody listens.
	Changed func(T)
	// Log takes what went wrong; nil: nobody reads it.
	Log *slog.Logger
}

// List is a pointer to a list of API objects.
type List interface {
	runtime.Object
	metav1.ListInterface
}

// Many follows all objects of a selection. Use [NewMany].
type Many[T Object] struct {
	opts ManyOptions[T]

	mu      sync.Mutex
	known   bool
	objects map[string]T // by namespace/name; replaced, never changed, so that it can be handed out
	err     error        // why nothing is known yet
	ailing  bool         // the last session failed, and the log has it
	news    chan struct{}
}

// NewMany allocates; nothing happens before Run.
func NewMany[T Object](opts ManyOptions[T]) *Many[T] {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &Many[T]{opts: opts, objects: map[string]T{}, news: make(chan struct{})}
}

// Get returns the object of that name as it is known now, or a NotFoundError.
// It waits for the first list, or the reason why there is none, until ctx ends.
func (m *Many[T]) Get(ctx context.Context, namespace, name string) (T, error) {
	var none T
	if err := m.wait(ctx); err != nil {
		return none, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	object, ok := m.objects[key(namespace, name)]
	if !ok {
		return none, &objects.NotFoundError{Kind: m.opts.Kind, Namespace: namespace, Name: name}
	}
	return object, nil
}

// List returns all objects that want says yes to, in no order. It waits as Get.
func (m *Many[T]) List(ctx context.Context, want func(T) bool) ([]T, error) {
	if err := m.wait(ctx); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []T
	for _, object := range m.objects {
		if want(object) {
			list = append(list, object)
		}
	}
	return list, nil
}

func (m *Many[T]) wait(ctx context.Context) error {
	for {
		m.mu.Lock()
		known, err, news := m.known, m.err, m.news
		m.mu.Unlock()
		if known {
			return nil
		}
		if err != nil {
			return m.unreachable(err)
		}
		select {
		case <-news:
		case <-ctx.Done():
			return m.unreachable(context.Cause(ctx))
		}
	}
}

func (m *Many[T]) unreachable(err error) error {
	return &objects.UnreachableError{Kind: m.opts.Kind, Namespace: m.opts.Namespace, Name: "*", Err: err}
}

// Run follows the selection until ctx ends.
func (m *Many[T]) Run(ctx context.Context) {
	var pace pace
	at := ""
	patience := time.Now().Add(forbiddenPatience)
	for ctx.Err() == nil {
		var err error
		if at, err = m.session(ctx, at, &pace); ctx.Err() != nil {
			return
		}
		wait := pace.next(err)
		switch left := time.Until(patience); {
		case errors.Is(err, errEnded): // as watches do
		case isExpired(err):
			at = ""
		case mayPass(err) && left > 0:
			wait = min(wait, left)
		default:
			m.failed(ctx, err)
		}
		if tasks.Pause(ctx, wait) != nil {
			return
		}
	}
}

// session lists, unless at tells from which version to go on, and watches until
// something ends it. It returns the version that it came to.
func (m *Many[T]) session(ctx context.Context, at string, pace *pace) (string, error) {
	if at == "" {
		list := m.opts.NewList()
		if err := m.opts.list(ctx, list); err != nil {
			return "", err
		}
		at = list.GetResourceVersion()
		m.replace(m.opts.Items(list))
	}
	w, err := m.opts.watch(ctx, m.opts.FieldSelector, at)
	if err != nil {
		return at, err
	}
	defer w.Stop()
	pace.reset()
	m.recovered()
	for {
		kind, object, err := nextEvent[T](ctx, w)
		if err != nil {
			return at, err
		}
		at = object.GetResourceVersion()
		m.take(kind, object)
	}
}

func (m *Many[T]) take(kind watch.EventType, object T) {
	id := key(object.GetNamespace(), object.GetName())
	m.mu.Lock()
	switch kind {
	case watch.Added, watch.Modified:
		m.trim(object)
		m.objects[id] = object
	case watch.Deleted:
		delete(m.objects, id)
	case watch.Bookmark, watch.Error:
		m.mu.Unlock()
		return
	}
	m.mu.Unlock()
	m.tell(object)
}

// replace takes in a whole list.
func (m *Many[T]) replace(items []T) {
	now := make(map[string]T, len(items))
	for _, object := range items {
		m.trim(object)
		now[key(object.GetNamespace(), object.GetName())] = object
	}
	m.mu.Lock()
	before := m.objects
	m.objects, m.known, m.err = now, true, nil
	close(m.news)
	m.news = make(chan struct{})
	m.mu.Unlock()
	for id, object := range now {
		if old, ok := before[id]; !ok || old.GetResourceVersion() != object.GetResourceVersion() {
			m.tell(object)
		}
	}
	for id, object := range before {
		if _, ok := now[id]; !ok {
			m.tell(object)
		}
	}
}

func (m *Many[T]) trim(object T) {
	if m.opts.Trim != nil {
		m.opts.Trim(object)
	}
}

func (m *Many[T]) tell(object T) {
	if m.opts.Changed != nil {
		m.opts.Changed(object)
	}
}

// failed notes why nothing is known.
func (m *Many[T]) failed(ctx context.Context, err error) {
	m.mu.Lock()
	known, logged := m.known, m.ailing
	m.ailing = true
	if !known {
		m.err = err
		close(m.news)
		m.news = make(chan struct{})
	}
	m.mu.Unlock()
	if !logged {
		m.opts.Log.WarnContext(ctx, "objects can not be followed; trying again", "kind", m.opts.Kind,
			"namespace", m.opts.Namespace, "known", known, "err", err)
	}
}

func (m *Many[T]) recovered() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ailing = false
}

func key(namespace, name string) string { return namespace + "/" + name }
