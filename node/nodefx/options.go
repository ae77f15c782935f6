package nodefx

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"nodekit.dev/node"
	"nodekit.dev/node/wire"
)

// Option is one thing said about an agent. Options may come in any order.
type Option func(*settings)

// settings is what the options add up to.
type settings struct {
	config    wire.Config
	budget    time.Duration
	overrides []*override
	extra     []fx.Option
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
	return s, errors.Join(s.errs...)
}

// Config sets what the parts are made from. Default: wire.Default.
func Config(cfg wire.Config) Option { return func(s *settings) { s.config = cfg } }

// StopBudget is how long each part has to stop. Default: 30 s. A part that
// overruns is named in the error of Stop, and the others still stop.
func StopBudget(d time.Duration) Option { return func(s *settings) { s.budget = d } }

// Supply puts values in the graph, for constructors to ask for by type.
func Supply(values ...any) Option {
	return func(s *settings) { s.extra = append(s.extra, fx.Supply(values...)) }
}

// Provide puts constructors in the graph, for other constructors to ask for
// what they return. Nothing is built that nobody asks for.
func Provide(constructors ...any) Option {
	return func(s *settings) { s.extra = append(s.extra, fx.Provide(constructors...)) }
}

// WithEventLogger shows what fx does, step by step. Default: nothing.
func WithEventLogger(fn func(*slog.Logger) fxevent.Logger) Option {
	return func(s *settings) { s.events = fn }
}

// AddHook adds a hook: a node.Hook, or a constructor that returns one. It comes
// after the hooks that after names.
func AddHook(name string, hook any, after ...string) Option {
	return add[node.Hook]("hooks", name, hook, after)
}

// AddMutator adds a mutator: a node.Mutator, or a constructor that returns one.
func AddMutator(name string, mutator any, after ...string) Option {
	return add[node.Mutator]("mutators", name, mutator, after)
}

// AddAdmitter adds an admitter: a node.Admitter, or a constructor that returns one.
func AddAdmitter(name string, admitter any, after ...string) Option {
	return add[node.Admitter]("admitters", name, admitter, after)
}

// AddSource adds a source of pods under its own name: a node.Source, or a
// constructor that returns one.
func AddSource(name string, source any) Option {
	return add[node.Source]("sources", name, source, nil)
}

// AddStatusSink adds a taker of pod statuses: a node.StatusSink, or a
// constructor that returns one.
func AddStatusSink(sink any) Option { return addPlain[node.StatusSink]("status", sink) }

// AddEventSink adds a taker of events: a node.EventSink, or a constructor that
// returns one.
func AddEventSink(sink any) Option { return addPlain[node.EventSink]("events", sink) }

// add turns a member, or its constructor, into a member of an ordered group.
func add[I any](group, name string, member any, after []string) Option {
	return func(s *settings) {
		ordered := func(v I) node.Ordered[I] { return node.Ordered[I]{Name: name, After: after, Value: v} }
		s.member(group, name, reflect.TypeFor[I](), reflect.TypeFor[node.Ordered[I]](), member, func(v reflect.Value) reflect.Value {
			return reflect.ValueOf(ordered(v.Interface().(I)))
		})
	}
}

func addPlain[I any](group string, member any) Option {
	return func(s *settings) {
		seam := reflect.TypeFor[I]()
		s.member(group, seam.Name(), seam, seam, member, func(v reflect.Value) reflect.Value {
			out := reflect.New(seam).Elem()
			out.Set(v)
			return out
		})
	}
}

// member provides one value of a group: a function with the constructor's
// parameters, or none, whose result the group collects.
func (s *settings) member(group, name string, seam, result reflect.Type, member any, finish func(reflect.Value) reflect.Value) {
	if member == nil {
		s.fail(fmt.Errorf("%s %q: nil", group, name))
		return
	}
	if t := reflect.TypeOf(member); t.Kind() != reflect.Func || t.Implements(seam) {
		if !t.Implements(seam) {
			s.fail(fmt.Errorf("%s %q: %v does not implement %v: %s", group, name, t, seam, missing(t, seam)))
			return
		}
		constant := reflect.ValueOf(member)
		member = reflect.MakeFunc(reflect.FuncOf(nil, []reflect.Type{t}, false), func([]reflect.Value) []reflect.Value {
			return []reflect.Value{constant}
		}).Interface()
	}
	if err := checkConstructor(seam, member); err != nil {
		s.fail(fmt.Errorf("%s %q: %w", group, name, err))
		return
	}
	o := &override{seam: seam, replace: member}
	signature := reflect.FuncOf(parameters(member), []reflect.Type{result, errorType}, false)
	provider := reflect.MakeFunc(signature, func(args []reflect.Value) []reflect.Value {
		part, err := o.construct(args)
		if err != nil {
			return []reflect.Value{reflect.Zero(result), reflect.ValueOf(&err).Elem()}
		}
		return []reflect.Value{finish(part), reflect.Zero(errorType)}
	}).Interface()
	s.groups = append(s.groups, fx.Provide(fx.Annotate(provider, fx.ResultTags(`group:"`+group+`"`))))
}
