package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"nodekit.dev/node"
)

// Config says who tells and how much is kept. Default has all but NodeName.
type Config struct {
	// NodeName is the source host of all events. Required.
	NodeName string
	// Component is the source component.
	Component string
	// NodeUID is the UID of the Node object once it is known; nil: events about
	// the node have none.
	NodeUID func() types.UID
	// Queue is how many events wait for an API server that is away; then the
	// oldest go.
	Queue int
	// Gather is how long the first event after a quiet time waits: an event is never
	// urgent, and what it tells of is under way still, such as the start of a pod,
	// whose status should reach the API server first. What is told twice meanwhile is
	// written once. 0: not at all.
	Gather time.Duration
	// KeepFor is how long an event waits before it is given up.
	KeepFor time.Duration
	// RetryMin is the pause after a first failure; it doubles up to RetryMax.
	RetryMin, RetryMax time.Duration
	// FlushFor is how long Run goes on when ctx ended, for what still waits.
	FlushFor time.Duration
	// Timeout bounds one request.
	Timeout time.Duration
	// Observer's functions may be nil.
	Observer Observer
	// Log is nil for no logs.
	Log *slog.Logger
}

// Observer is told what happens, for metrics. Its functions must not block.
type Observer struct {
	// Sent is called after each request.
	Sent func(err error)
	// Dropped is called for each event that is given up, with why: "spam",
	// "full", "old" or "refused".
	Dropped func(why string)
}

// Default is the stock source and limits.
func Default() Config {
	return Config{
		Component: "kubelet", Queue: 1000, Gather: 500 * time.Millisecond, KeepFor: time.Hour,
		RetryMin: time.Second, RetryMax: 10 * time.Second, FlushFor: time.Second, Timeout: 30 * time.Second,
	}
}

// Validate names every field that is wrong.
func (c Config) Validate() error {
	var errs []error
	if c.NodeName == "" {
		errs = append(errs, errors.New("NodeName: must not be empty"))
	}
	if c.Component == "" {
		errs = append(errs, errors.New("the Component must not be empty"))
	}
	if c.Gather < 0 {
		errs = append(errs, fmt.Errorf("the Gather: %v must not be negative", c.Gather))
	}
	if c.Queue < 1 {
		errs = append(errs, fmt.Errorf("the Queue: %d must be at least 1", c.Queue))
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"KeepFor", c.KeepFor}, {"RetryMin", c.RetryMin}, {"RetryMax", c.RetryMax}, {"Timeout", c.Timeout}} {
		if d.value <= 0 {
			errs = append(errs, fmt.Errorf("%s: %v must be above 0", d.field, d.value))
		}
	}
	return errors.Join(errs...)
}

// Recorder takes events and writes them to the API server. It is a
// node.EventSink. Its methods may be called concurrently and never block. Use New.
type Recorder struct {
	cfg  Config
	core rest.Interface
	log  *slog.Logger
	ran  atomic.Bool

	wake chan struct{}

	mu    sync.Mutex
	known *correlator
	queue []*series
	lost  int   // for want of room, since the last word in the log
	named int64 // the time in the newest name
}

var _ node.EventSink = (*Recorder)(nil)

// New makes a recorder that writes with core, the API group v1, whose rate
// limit is that of events.
func New(cfg Config, core rest.Interface) (*Recorder, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	if core == nil {
		return nil, errors.New("events: no REST client of the API group v1")
	}
	if cfg.NodeUID == nil {
		cfg.NodeUID = func() types.UID { return "" }
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Observer.Sent == nil {
		cfg.Observer.Sent = func(error) {}
	}
	if cfg.Observer.Dropped == nil {
		cfg.Observer.Dropped = func(string) {}
	}
	return &Recorder{
		cfg: cfg, core: core, log: cfg.Log, known: newCorrelator(), wake: make(chan struct{}, 1),
	}, nil
}

// PodEvent implements node.EventSink.
func (r *Recorder) PodEvent(e node.PodEvent) {
	r.Event(podReference(e), string(e.Type), e.Reason, e.Message)
}

// NodeEvent takes an event about the node.
func (r *Recorder) NodeEvent(eventType, reason, message string) {
	r.Event(corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: r.cfg.NodeName, UID: r.cfg.NodeUID()}, eventType, reason, message)
}

// Event takes an event about any object; eventType is "Normal" or "Warning".
func (r *Recorder) Event(about corev1.ObjectReference, eventType, reason, message string) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.UnixNano() <= r.named { // two at once must not have one name
		now = time.Unix(0, r.named+1)
	}
	r.named = now.UnixNano()
	e := r.event(about, eventType, reason, message, now)
	s, tell := r.known.observe(e, now)
	switch {
	case !tell:
		r.cfg.Observer.Dropped("spam")
	case !s.queued:
		s.queued = true
		r.queue = append(r.queue, s)
		if len(r.queue) > r.cfg.Queue {
			r.queue[0].queued = false
			r.queue = r.queue[1:]
			r.lost++
			r.cfg.Observer.Dropped("full")
		}
		r.poke()
	}
}

func (r *Recorder) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// event has the stock form.
func (r *Recorder) event(about corev1.ObjectReference, eventType, reason, message string, now time.Time) corev1.Event {
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	at := metav1.NewTime(now)
	return corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: eventName(about.Name, now), Namespace: namespace},
		InvolvedObject: about, Type: eventType, Reason: reason, Message: message,
		Source:              corev1.EventSource{Component: r.cfg.Component, Host: r.cfg.NodeName},
		ReportingController: r.cfg.Component, ReportingInstance: r.cfg.NodeName,
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
	}
}

// eventName is that of the object and the time; an object whose name leaves no
// room for the time gives way to chance.
func eventName(object string, now time.Time) string {
	name := fmt.Sprintf("%s.%x", object, now.UnixNano())
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "event." + rand.String(20)
	}
	return name
}

// podReference names the pod, and the container where the event has one.
func podReference(e node.PodEvent) corev1.ObjectReference {
	ref := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: e.Namespace, Name: e.Name, UID: types.UID(e.UID)}
	if e.Pod != nil {
		ref.ResourceVersion = e.Pod.ResourceVersion
		ref.FieldPath = fieldPath(e.Pod, e.Container)
	}
	return ref
}

// fieldPath is empty for a container that the pod does not have.
func fieldPath(pod *corev1.Pod, container string) string {
	if container == "" {
		return ""
	}
	for _, c := range pod.Spec.Containers {
		if c.Name == container {
			return "spec.containers{" + container + "}"
		}
	}
	for _, c := range pod.Spec.InitContainers {
		if c.Name == container {
			return "spec.initContainers{" + container + "}"
		}
	}
	for _, c := range pod.Spec.EphemeralContainers {
		if c.Name == container {
			return "spec.ephemeralContainers{" + container + "}"
		}
	}
	return ""
}

// Run writes what was taken until ctx ends, and a moment longer for what still
// waits. It may be called once.
func (r *Recorder) Run(ctx context.Context) error {
	if r.ran.Swap(true) {
		return errors.New("events: Run was called before; make a new recorder with events.New")
	}
	r.sendAll(ctx)
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.FlushFor)
	defer cancel()
	r.flush(undo)
	return ctx.Err()
}
