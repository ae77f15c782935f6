package observe

import (
	"context"
	"errors"
	"time"

	"nodekit.dev/runtime"
)

// runEvents keeps the event stream open. Where the runtime has no events it
// waits until the runtime is another one. A break is logged when it begins.
func (o *Observer) runEvents(ctx context.Context) error {
	wait := o.cfg.ReconnectMin
	told := false // what is wrong at present
	for {
		began := time.Now()
		err := o.streamEvents(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if unimplemented(err) {
			if !told {
				o.cfg.Log.Info("the runtime has no container events; its pods are listed more often instead", "err", err)
				told = true
			}
			if err := pause(ctx, o.newRuntime, nil); err != nil {
				return err
			}
			continue
		}
		if time.Since(began) > o.cfg.ReconnectMax {
			wait, told = o.cfg.ReconnectMin, false // it worked for a while
		}
		if !told {
			o.cfg.Log.Info("the runtime's event stream ended; it is opened again", "err", err)
			told = true
		}
		drain(o.newRuntime) // of the runtime that the stream was open to
		if err := pause(ctx, o.newRuntime, time.After(wait)); err != nil {
			return err
		}
		wait = min(2*wait, o.cfg.ReconnectMax)
	}
}

// streamEvents turns events into hints until the stream breaks.
func (o *Observer) streamEvents(ctx context.Context) error {
	err := o.source.Events(ctx, o.eventsOpened, o.event)
	if o.streaming.Swap(false) {
		o.relist.now() // the interval is the short one again
	}
	o.cfg.Trace.EventStream(false, err)
	return err
}

// eventsOpened makes up for the events that came before the stream was open.
func (o *Observer) eventsOpened() {
	o.streaming.Store(true)
	o.cfg.Trace.EventStream(true, nil)
	o.hints.add(runtime.Hint{})
	o.relist.now()
}

// event hints at the pod; a pod that is not named is found by a list.
func (o *Observer) event(hint runtime.Hint) {
	o.cfg.Trace.Event(hint.UID)
	if hint.UID == "" {
		o.relist.now()
		return
	}
	o.hints.add(hint)
}

// pause waits for a signal or a time, whichever comes first. A nil channel
// never comes.
func pause(ctx context.Context, signal <-chan struct{}, timer <-chan time.Time) error {
	select {
	case <-signal:
		return nil
	case <-timer:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drain takes a signal that nobody waits for.
func drain(signal <-chan struct{}) {
	select {
	case <-signal:
	default:
	}
}

// unimplemented asks the error whether the runtime has no such call.
func unimplemented(err error) bool {
	var u interface{ Unimplemented() bool }
	return errors.As(err, &u) && u.Unimplemented()
}
