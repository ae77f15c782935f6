package register

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
)

// Registrar keeps the Node object and its lease. Use New.
type Registrar struct {
	cfg     Config
	parts   Parts
	log     *slog.Logger
	setters []node.Ordered[Setter]

	kick       chan struct{}
	ran        atomic.Bool
	registered chan struct{} // closed when the Node object was seen
	once       sync.Once     // for registered

	// node is the newest that is known: built here, or as the API server has it.
	node atomic.Pointer[corev1.Node]

	// What follows is the status loop's own.
	exists    bool      // the Node was created or found
	fresh     bool      // it agrees with what a new one would be
	reported  time.Time // when the status was last taken; zero: never
	late      time.Duration
	cordoned  bool
	toldReady bool
	// untold is the Node before a write that seemed to fail, and may have been
	// taken all the same: the events of that change are still to be told.
	untold   *corev1.Node
	podCIDR  string
	failures int // registrations in a row that failed
	grumbles grumbles
}

// New checks the configuration and puts the setters in order. It does no I/O.
func New(cfg Config, parts Parts) (*Registrar, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("registration of the node: %w", err)
	}
	cfg = cfg.withDefaults()
	parts, err := parts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("registration of the node: %w", err)
	}
	contributors, err := node.InOrder("node resources", parts.Resources)
	if err != nil {
		return nil, fmt.Errorf("registration of the node: %w", err)
	}
	setters, err := merge(stockSetters(cfg, parts, contributors), parts.Setters)
	if err != nil {
		return nil, fmt.Errorf("registration of the node: %w", err)
	}
	return &Registrar{
		cfg: cfg, parts: parts, log: parts.Log, setters: setters,
		kick: make(chan struct{}, 1), registered: make(chan struct{}), grumbles: newGrumbles(),
	}, nil
}

// SetterNames lists the setters in the order in which they run.
func (r *Registrar) SetterNames() (names []string) {
	for _, s := range r.setters {
		names = append(names, s.Name)
	}
	return names
}

// Run registers the node and keeps its status and lease until ctx ends. Nothing
// waits for it: an API server that is away is tried again, for as long as it
// takes. It may be called once.
func (r *Registrar) Run(ctx context.Context) error {
	if r.ran.Swap(true) {
		return errors.New("registration of the node: Run was called before; make a new one with register.New")
	}
	r.parts.Event(corev1.EventTypeNormal, "Starting", "Starting kubelet.")
	for _, w := range r.cfg.StartWarnings {
		r.parts.Event(corev1.EventTypeWarning, w.Reason, w.Message)
	}
	group := tasks.New(ctx)
	group.Go("node-status", r.runStatus)
	if r.parts.Coordination != nil {
		group.Go("node-lease", r.runLease)
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("registration of the node: %w", err)
	}
	return ctx.Err()
}

// Kick has the status put together now, and told if it changed. It never
// blocks; kicks during one pass are one further pass.
func (r *Registrar) Kick() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// Registered is closed when the Node object is there.
func (r *Registrar) Registered() <-chan struct{} { return r.registered }

// Node is the node as it is known now: as the API server last had it, else as
// it will be registered, else, before Run, without its status. It is shared and
// must not be changed.
func (r *Registrar) Node() *corev1.Node {
	if n := r.node.Load(); n != nil {
		return n
	}
	return initialNode(r.cfg)
}

// UID is that of the Node object; empty until it is known.
func (r *Registrar) UID() types.UID { return r.Node().UID }

// HostIPs are the addresses of the node for its pods, see lifecycle.HostIPs.
func (r *Registrar) HostIPs() []string { return lifecycle.HostIPs(r.Node()) }

// remember keeps the newest Node, and tells who waits for it.
func (r *Registrar) remember(n *corev1.Node) {
	r.node.Store(n)
	r.once.Do(func() { close(r.registered) })
}
