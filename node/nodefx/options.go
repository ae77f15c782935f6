package nodefx

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"nodekit.dev/node/wire"
)

// Option is one thing said about an agent. Options may come in any order.
type Option func(*settings)

// settings is what the options add up to.
type settings struct {
	config    wire.Config
	edits     []func(*wire.Config)
	budget    time.Duration
	overrides []*override
	effects   []*effect
	configs   []*configOf
	extra     []fx.Option
	populate  []fx.Option
	groups    []fx.Option
	events    func(*slog.Logger) fxevent.Logger
	errs      []error
}

func (s *settings) fail(err error) { s.errs = append(s.errs, err) }

func newSettings(opts []Option) (*settings, error) {
	s := &settings{config: wire.Default(), budget: 30 * time.Second}
	for _, o := range opts {
		o(s)
	}
	for _, edit := range s.edits {
		edit(&s.config)
	}
	if s.budget <= 0 {
		s.fail(fmt.Errorf("StopBudget %v: must be positive", s.budget))
	}
	return s, errors.Join(s.errs...)
}

// Config sets what the parts are made from. Default: wire.Default.
func Config(cfg wire.Config) Option { return func(s *settings) { s.config = cfg } }

// Configure changes the configuration, whoever made it: it is called once,
// after all options were read and before any part is made. Settings that are
// policies are set so, Node.ReadyWhen for one.
func Configure(edit func(*wire.Config)) Option {
	return func(s *settings) { s.edits = append(s.edits, edit) }
}

// ConfigureOf changes a configuration of type C, which another module brought,
// as Configure does the agent's. Where there is none, it does nothing.
func ConfigureOf[C any](edit func(*C)) Option {
	return func(s *settings) {
		t := reflect.TypeFor[C]()
		i := slices.IndexFunc(s.configs, func(c *configOf) bool { return c.of == t })
		if i < 0 {
			i, s.configs = len(s.configs), append(s.configs, &configOf{of: t})
		}
		s.configs[i].edits = append(s.configs[i].edits, func(value any) any {
			c := value.(C)
			edit(&c)
			return c
		})
	}
}

// configOf is all that was said about one configuration. It becomes one
// Decorate.
type configOf struct {
	of    reflect.Type
	edits []func(any) any
}

func (c *configOf) decorate() fx.Option {
	return fx.Decorate(makeFunc([]reflect.Type{c.of}, c.of, func(args []reflect.Value) (any, error) {
		value := args[0].Interface()
		for _, edit := range c.edits {
			value = edit(value)
		}
		return value, nil
	}))
}

// StopBudget is how long each part has to stop. Default: 30 s. A part that
// overruns is named in the error of Stop, and the others still stop. A node that
// drains has 5 s more than its DrainTimeout, if that is longer.
func StopBudget(d time.Duration) Option { return func(s *settings) { s.budget = d } }

// Supply puts values in the graph, for constructors to ask for by type.
func Supply(values ...any) Option {
	return func(s *settings) {
		for i, v := range values {
			if v == nil {
				s.fail(fmt.Errorf("Supply: value %d is nil, which has no type to ask for", i+1))
				return
			}
		}
		s.extra = append(s.extra, fx.Supply(values...))
	}
}

// Provide puts constructors in the graph, for other constructors to ask for
// what they return. Nothing is built that nobody asks for.
func Provide(constructors ...any) Option {
	return func(s *settings) { s.extra = append(s.extra, fx.Provide(constructors...)) }
}

// Populate fills in what pointers point to, with the part of that type, once New
// has made all parts. It has a part made that nobody else asks for.
func Populate(targets ...any) Option {
	return func(s *settings) { s.populate = append(s.populate, fx.Populate(targets...)) }
}

// Options makes one of several, for a module that brings more than one thing.
func Options(opts ...Option) Option {
	return func(s *settings) {
		for _, o := range opts {
			o(s)
		}
	}
}

// WithEventLogger shows what fx does, step by step. Default: nothing.
func WithEventLogger(fn func(*slog.Logger) fxevent.Logger) Option {
	return func(s *settings) { s.events = fn }
}
