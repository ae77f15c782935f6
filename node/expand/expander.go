package expand

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/volume"
)

// Expander grows volumes. Use [New]. Safe for concurrent use.
type Expander struct {
	cfg   Config
	parts Parts
	ran   atomic.Bool
	wake  chan struct{}
	slots chan struct{}
	// unwatchable is set once the API server said that this node may not watch
	// claims.
	unwatchable atomic.Bool

	mu      sync.Mutex
	pending map[string][]Growth // told by Grown, by PersistentVolume
	last    map[string]*followed
}

// New checks and allocates.
func New(cfg Config, parts Parts) (*Expander, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("expand: %w", err)
	}
	if parts.Core == nil || parts.Volumes == nil || parts.Grower == nil {
		return nil, errors.New("expand: parts: Core, Volumes and Grower are needed: the REST client of the API group v1, what is mounted, and who grows it")
	}
	if parts.Event == nil {
		parts.Event = func(Event) {}
	}
	if parts.Log == nil {
		parts.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Observer.Grew == nil {
		cfg.Observer.Grew = func(Growth) {}
	}
	return &Expander{
		cfg: cfg, parts: parts, wake: make(chan struct{}, 1), slots: make(chan struct{}, cfg.Width),
		pending: map[string][]Growth{}, last: map[string]*followed{},
	}, nil
}

// Changed says that a volume was mounted or unmounted, or that a driver came.
func (e *Expander) Changed() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Grown says that a volume was grown, or failed to be, while it was mounted: its
// users and its claim are told.
func (e *Expander) Grown(g Growth) {
	if g.Volume.PersistentVolume == nil {
		return
	}
	name := g.Volume.PersistentVolume.Name
	e.mu.Lock()
	e.pending[name] = append(e.pending[name], g)
	if f := e.last[name]; f != nil {
		f.look()
	}
	e.mu.Unlock()
	e.Changed()
}

// takeGrown returns what [Expander.Grown] said of a volume.
func (e *Expander) takeGrown(pv string) []Growth {
	e.mu.Lock()
	defer e.mu.Unlock()
	growths := e.pending[pv]
	delete(e.pending, pv)
	return growths
}

// Run follows the claims of what is mounted until ctx ends, and returns its
// error.
func (e *Expander) Run(ctx context.Context) error {
	if e.ran.Swap(true) {
		return errors.New("expand: Run was called before; make a new Expander")
	}
	group := tasks.New(ctx)
	for err := error(nil); err == nil; {
		e.compare(group)
		select {
		case <-e.wake:
		case <-group.Context().Done():
			err = context.Cause(group.Context())
		}
	}
	group.Stop()
	return errors.Join(group.Wait(), ctx.Err())
}

// compare has each volume followed that is here, and no other.
func (e *Expander) compare(group *tasks.Group) {
	recorded, err := e.parts.Volumes()
	if err != nil {
		e.parts.Log.Warn("can not read which volumes are mounted; what was not known before is not grown", "err", err)
		return
	}
	uses := map[string][]volume.Recorded{}
	for _, r := range recorded {
		if r.PersistentVolume != nil && r.Claim.Name != "" {
			uses[r.PersistentVolume.Name] = append(uses[r.PersistentVolume.Name], r)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, f := range e.last {
		if len(uses[name]) == 0 {
			f.stop()
			delete(e.last, name)
			delete(e.pending, name)
		}
	}
	for name, all := range uses {
		slices.SortFunc(all, func(a, b volume.Recorded) int { return cmp.Compare(a.UID+"/"+a.Volume.Name, b.UID+"/"+b.Volume.Name) })
		if f := e.last[name]; f != nil {
			f.use(all)
			continue
		}
		f := newFollowed(e, all)
		e.last[name] = f
		group.Go("volume-growth", func(ctx context.Context) error {
			f.run(ctx)
			return nil
		})
	}
}
