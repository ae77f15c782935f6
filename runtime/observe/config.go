package observe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"nodekit.dev/runtime"
)

// Source is what a runtime has to answer. The default is runtime/cri. All
// methods may block until ctx ends and are called concurrently.
type Source interface {
	// ListPods reads who is there and in what state; it is called often and
	// should ask for no more than that.
	ListPods(ctx context.Context) ([]runtime.Pod, error)
	// LookPod reads all of one pod; a pod that is not there is empty.
	LookPod(ctx context.Context, uid string) (runtime.Pod, error)
	// Status reads the runtime's health.
	Status(ctx context.Context) (runtime.Status, error)
	// Events calls opened once when the stream is open, then event for each
	// event, with no UID when its pod is not known, and returns when the stream breaks or ctx ends. A runtime without events returns an
	// error that answers Unimplemented() bool with true. One call at a time.
	Events(ctx context.Context, opened func(), event func(runtime.Hint)) error
}

// Config says how to watch. A zero duration is replaced by the default.
type Config struct {
	// Events uses container events where the runtime has them. False: relist
	// only. DefaultConfig has it on.
	Events bool
	// RelistWithEvents is the longest time between lists while events come
	// (60 s); RelistMin and RelistMax are the shortest and the longest without
	// them (1 s and 10 s).
	RelistWithEvents time.Duration
	RelistMin        time.Duration
	RelistMax        time.Duration
	// ListTimeout bounds one list (1 min), LookTimeout the look at one pod
	// (20 s), StatusTimeout one question about health (15 s).
	ListTimeout   time.Duration
	LookTimeout   time.Duration
	StatusTimeout time.Duration
	// StatusInterval is the time between questions about health (5 s); it is
	// RelistMin, if that is shorter, while the runtime is not ready.
	StatusInterval time.Duration
	// QuarantineMin is how long a pod is left alone after a look that took too
	// long (10 s); it doubles up to QuarantineMax (2 min).
	QuarantineMin time.Duration
	QuarantineMax time.Duration
	// ReconnectMin is the wait before the event stream is opened again
	// (100 ms); it doubles up to ReconnectMax (5 s).
	ReconnectMin time.Duration
	ReconnectMax time.Duration
	// Log is nil for no logs.
	Log *slog.Logger
	// Trace's functions may be nil.
	Trace Trace
}

// Trace is told what happens, for metrics. Its functions must not block.
type Trace struct {
	// Listed is called after each relist, with how many pods changed.
	Listed func(took time.Duration, pods, changed int, err error)
	// Looked is called after each look that asked the runtime.
	Looked func(uid string, took time.Duration, err error)
	// Quarantined is called when a pod is left alone for a while.
	Quarantined func(uid string, wait time.Duration)
	// EventStream is called when the stream opens and when it ends.
	EventStream func(open bool, err error)
	// Event is called for each event.
	Event func(uid string)
	// Health is called when the runtime's status is another one than before, in
	// any field but ReadyAt. Observer.Status tells it already.
	Health func(runtime.Status)
}

// DefaultConfig is events on, and the default of every duration.
func DefaultConfig() Config { return Config{Events: true}.withDefaults() }

// Validate says what is wrong with the configuration, by field.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"RelistWithEvents", c.RelistWithEvents}, {"RelistMin", c.RelistMin}, {"RelistMax", c.RelistMax},
		{"ListTimeout", c.ListTimeout}, {"LookTimeout", c.LookTimeout}, {"StatusTimeout", c.StatusTimeout},
		{"StatusInterval", c.StatusInterval}, {"QuarantineMin", c.QuarantineMin}, {"QuarantineMax", c.QuarantineMax},
		{"ReconnectMin", c.ReconnectMin}, {"ReconnectMax", c.ReconnectMax},
	} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("%s: %v: must not be negative", d.name, d.value))
		}
	}
	for _, p := range []struct {
		name     string
		min, max time.Duration
	}{
		{"RelistMax", c.RelistMin, c.RelistMax}, {"RelistWithEvents", c.RelistMin, c.RelistWithEvents},
		{"QuarantineMax", c.QuarantineMin, c.QuarantineMax}, {"ReconnectMax", c.ReconnectMin, c.ReconnectMax},
	} {
		if p.max < p.min {
			errs = append(errs, fmt.Errorf("%s: %v: must not be less than %v, the shortest time", p.name, p.max, p.min))
		}
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{
		{&c.RelistWithEvents, time.Minute}, {&c.RelistMin, time.Second}, {&c.RelistMax, 10 * time.Second},
		{&c.ListTimeout, time.Minute}, {&c.LookTimeout, 20 * time.Second}, {&c.StatusTimeout, 15 * time.Second},
		{&c.StatusInterval, 5 * time.Second}, {&c.QuarantineMin, 10 * time.Second}, {&c.QuarantineMax, 2 * time.Minute},
		{&c.ReconnectMin, 100 * time.Millisecond}, {&c.ReconnectMax, 5 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.fallback
		}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Trace = c.Trace.filled()
	return c
}

// filled puts a function that does nothing where there is none.
func (t Trace) filled() Trace {
	if t.Listed == nil {
		t.Listed = func(time.Duration, int, int, error) {}
	}
	if t.Looked == nil {
		t.Looked = func(string, time.Duration, error) {}
	}
	if t.Quarantined == nil {
		t.Quarantined = func(string, time.Duration) {}
	}
	if t.EventStream == nil {
		t.EventStream = func(bool, error) {}
	}
	if t.Event == nil {
		t.Event = func(string) {}
	}
	if t.Health == nil {
		t.Health = func(runtime.Status) {}
	}
	return t
}
