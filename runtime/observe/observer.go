package observe

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/runtime"
)

// Observer watches one runtime. Its methods are safe for concurrent use. Use
// New.
type Observer struct {
	cfg        Config
	source     Source
	hints      *hintQueue
	quarantine *quarantine
	relist     *relister
	health     *health
	streaming  atomic.Bool   // events are coming
	newRuntime chan struct{} // the runtime came back, or is another one
	ran        atomic.Bool
}

// New checks the configuration. It asks the source nothing.
func New(cfg Config, source Source) (*Observer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("runtime observer: %w", err)
	}
	if source == nil {
		return nil, errors.New("runtime observer: no source")
	}
	cfg = cfg.withDefaults()
	return &Observer{
		cfg:        cfg,
		source:     source,
		hints:      newHintQueue(),
		quarantine: newQuarantine(cfg.QuarantineMin, cfg.QuarantineMax),
		relist:     newRelister(),
		health:     newHealth(),
		newRuntime: make(chan struct{}, 1),
	}, nil
}

// Run watches until ctx ends and returns its error. It may be called once.
func (o *Observer) Run(ctx context.Context) error {
	if o.ran.Swap(true) {
		return errors.New("runtime observer: Run was called twice")
	}
	group := tasks.New(ctx)
	group.Go("runtime-hints", o.hints.run)
	group.Go("runtime-relist", o.runRelist)
	group.Go("runtime-health", o.runHealth)
	if o.cfg.Events {
		group.Go("runtime-events", o.runEvents)
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("runtime observer: %w", err)
	}
	return ctx.Err()
}

// Hints says which pods to look at again. It is the same channel on every
// call, has one reader, and is never closed.
func (o *Observer) Hints() <-chan runtime.Hint { return o.hints.out }

// Status is the runtime's health as last read. It does not block.
func (o *Observer) Status() runtime.Status { return o.health.last() }

// List reads all pods from the runtime: who is there and in what state. The
// first list that works also reads the runtime's health, so that who starts with
// a list knows from Status whose pods these are.
func (o *Observer) List(ctx context.Context) ([]runtime.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, o.cfg.ListTimeout)
	defer cancel()
	pods, err := o.source.ListPods(ctx)
	if err == nil && o.health.last().Name == "" {
		o.readHealth(ctx)
	}
	return pods, err
}
