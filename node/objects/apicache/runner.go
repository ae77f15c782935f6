package apicache

import (
	"context"
	"sync"

	"nodekit.dev/internal/tasks"
)

// runner runs followers for as long as the cache does. Those that were asked
// for before begin with it.
type runner struct {
	mu    sync.Mutex
	group *tasks.Group // nil: not yet, or not any more
	early []*follower  // asked for before the group was there
	over  bool
}

// follower is one task of a runner.
type follower struct {
	name    string
	run     func(context.Context)
	cancel  context.CancelFunc // nil: not begun
	stopped bool
}

// start begins a task, or notes it for later. stop does not wait for its end.
func (r *runner) start(name string, run func(context.Context)) (stop func()) {
	f := &follower{name: name, run: run}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.group != nil:
		r.begin(f)
	case !r.over:
		r.early = append(r.early, f)
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		f.stopped = true
		if f.cancel != nil {
			f.cancel()
		}
	}
}

func (r *runner) begin(f *follower) {
	if f.stopped {
		return
	}
	ctx, cancel := context.WithCancel(r.group.Context())
	f.cancel = cancel
	r.group.Go(f.name, func(context.Context) error {
		defer cancel()
		f.run(ctx)
		return nil
	})
}

// live runs all tasks, and main beside them, until ctx ends.
func (r *runner) live(ctx context.Context, main func(context.Context) error) error {
	group := tasks.New(ctx)
	r.mu.Lock()
	r.group = group
	for _, f := range r.early {
		r.begin(f)
	}
	r.early = nil
	r.mu.Unlock()
	err := main(group.Context())
	r.mu.Lock()
	r.group, r.over = nil, true
	r.mu.Unlock()
	group.Stop()
	if werr := group.Wait(); werr != nil { // a panic of a task
		err = werr
	}
	return err
}
