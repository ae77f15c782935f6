package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"nodekit.dev/internal/gate"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
)

// Node runs the pods that its sources want. All methods but Run return at once
// and may be called from anywhere at any time. A Node runs once; to start
// again, make a new one.
type Node struct {
	cfg    Config
	parts  Parts
	groups groups
	actors podactor.Parts // the same for every actor but for Status
	log    *slog.Logger
	ran    atomic.Bool
	ready  chan struct{}

	mu    sync.Mutex // short: nothing that blocks or calls a vendor happens under it
	table table
	// waiting are the pods that an admitter told to come later.
	waiting map[*record]struct{}
}

// New checks the parts and puts the groups in order; nothing happens before Run.
func New(cfg Config, parts Parts) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("node: config: %w", err)
	}
	groups, err := parts.sort()
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	if parts.Decide == nil {
		parts.Decide = lifecycle.Decide
	}
	if parts.Log == nil {
		parts.Log = slog.New(slog.DiscardHandler)
	}
	n := &Node{
		cfg: cfg, parts: parts, groups: groups, log: parts.Log,
		ready: make(chan struct{}),
		table: newTable(), waiting: map[*record]struct{}{},
	}
	n.actors = podactor.Parts{
		Engine: parts.Engine, Watcher: parts.Watcher, Puller: parts.Puller, Mounter: parts.Mounter,
		Specs: groups.specs.around(parts.Specs), Admitters: groups.admitters, Allocator: parts.Allocator, Cgroups: parts.Cgroups,
		Environment: parts.Environment, RuntimeClasses: parts.RuntimeClasses, UserNamespaces: parts.UserNamespaces,
		Handlers: parts.Handlers, Prober: parts.Prober, Hooks: groups.hooks,
		Gate:     gate.New(cfg.StartWidth, cfg.StartPatience),
		Packer:   podactor.NewPacker(),
		Events:   eventFan{sinks: parts.EventSinks, log: parts.Log},
		Observer: podactor.Observer{ActionDone: parts.Observer.ActionDone},
		Decide:   parts.Decide, Log: parts.Log,
	}
	if err := n.actors.Validate(); err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	return n, nil
}

// Ready is closed once the runtime was read and Config.ReadyWhen was content.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// errRanBefore says that a Node was started a second time.
var errRanBefore = errors.New("node: Run was called before; make a new Node")

// Run lives until ctx ends and returns its error, after all goroutines ended.
// Containers run on, unless Config.DrainOnStop asks for their end.
func (n *Node) Run(ctx context.Context) error {
	if n.ran.Swap(true) {
		return errRanBefore
	}
	return newDispatcher(ctx, n).run(ctx)
}
