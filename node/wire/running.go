package wire

import (
	"context"
	"errors"

	"nodekit.dev/internal/tasks"
)

// running are parts that run. Those that were made later use those before them,
// and so end first: the last events and statuses still find the connection.
type running struct {
	*tasks.Group
	stops []func() // each ends a part and waits for it
}

func runParts(ctx context.Context, parts []Part) *running {
	r := &running{Group: tasks.New(ctx)}
	for _, p := range parts {
		r.run(p)
	}
	return r
}

func (r *running) run(p Part) {
	stopping, stop := context.WithCancel(context.WithoutCancel(r.Context()))
	ended := make(chan struct{})
	r.Go(p.Name, func(ctx context.Context) error {
		defer close(ended)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(stopping, cancel)()
		err := p.Run(ctx)
		if stopping.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil
		}
		return err
	})
	r.stops = append(r.stops, func() {
		stop()
		<-ended
	})
}

// end stops all parts, the last one first, and says what went wrong. A part that
// failed has stopped all of them at once.
func (r *running) end() error {
	for i := len(r.stops) - 1; i >= 0; i-- {
		r.stops[i]()
	}
	return r.Wait()
}
