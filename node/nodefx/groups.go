package nodefx

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"go.uber.org/fx"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/node"
	"nodekit.dev/node/server"
	"nodekit.dev/volume"
	"nodekit.dev/volume/stats"
)

// AddHook adds a hook: a node.Hook, or a constructor that returns one. It comes
// after the hooks that after names. The agent's own "log-links" is among them
// where the configuration asks for it.
func AddHook(name string, hook any, after ...string) Option {
	return add[node.Hook]("AddHook", "hooks", name, hook, after)
}

// AddMutator adds a mutator: a node.Mutator, or a constructor that returns one.
func AddMutator(name string, mutator any, after ...string) Option {
	return add[node.Mutator]("AddMutator", "mutators", name, mutator, after)
}

// AddAdmitter adds an admitter: a node.Admitter, or a constructor that returns one.
func AddAdmitter(name string, admitter any, after ...string) Option {
	return add[node.Admitter]("AddAdmitter", "admitters", name, admitter, after)
}

// AddSandboxMutator adds a node.SandboxMutator, such as a
// node.SandboxMutatorFunc, or a constructor that returns one.
func AddSandboxMutator(name string, mutator any, after ...string) Option {
	return add[node.SandboxMutator]("AddSandboxMutator", "sandboxmutators", name, mutator, after)
}

// AddContainerMutator adds a node.ContainerMutator, such as a
// node.ContainerMutatorFunc, or a constructor that returns one.
func AddContainerMutator(name string, mutator any, after ...string) Option {
	return add[node.ContainerMutator]("AddContainerMutator", "containermutators", name, mutator, after)
}

// AddStatusMutator adds a node.StatusMutator, such as a node.StatusMutatorFunc,
// or a constructor that returns one.
func AddStatusMutator(name string, mutator any, after ...string) Option {
	return add[node.StatusMutator]("AddStatusMutator", "statusmutators", name, mutator, after)
}

// AddVolumePlugin adds a volume.Plugin, or a constructor that returns one. It
// is asked before the stock plugins and so takes their volumes. Name is its
// place in the group; the plugin's own name is what Name returns.
func AddVolumePlugin(name string, plugin any, after ...string) Option {
	return add[volume.Plugin]("AddVolumePlugin", "volumeplugins", name, plugin, after)
}

// AddVolumeReader adds what measures the volumes of a plugin, by its name, such as
// "kubernetes.io/csi": a stats.Reader, or a constructor that returns one.
func AddVolumeReader(plugin string, reader any) Option {
	return add[stats.Reader]("AddVolumeReader", "volumereaders", plugin, reader, nil)
}

// AddSource adds a source of pods under its own name: a node.Source, or a
// constructor that returns one.
func AddSource(name string, source any) Option {
	return add[node.Source]("AddSource", "sources", name, source, nil)
}

// AddHTTPRoute adds a route to what the agent's server serves: an http.Handler,
// or a constructor that returns one. Pattern is as http.ServeMux takes it, such
// as "GET /debug/site". The agent collects routes (see [Agent.Routes]); it is
// the program that serves them, as cmd/kubelet/app does.
func AddHTTPRoute(pattern string, handler any) Option {
	return add[http.Handler]("AddHTTPRoute", "routes", pattern, handler, nil)
}

// AddAuthenticator adds a way to know who calls the agent's API: a
// server.Authenticator, or a constructor that returns one. One with the name of a
// stock one ("x509", "token-review") takes its place.
func AddAuthenticator(name string, authenticator any, after ...string) Option {
	return add[server.Authenticator]("AddAuthenticator", "authenticators", name, authenticator, after)
}

// AddAuthorizer adds a say in what callers of the agent's API may do: a
// server.Authorizer, or a constructor that returns one. The first that has an
// opinion decides. One with the name of the stock one ("webhook", or
// "always-allow") takes its place.
func AddAuthorizer(name string, authorizer any, after ...string) Option {
	return add[server.Authorizer]("AddAuthorizer", "authorizers", name, authorizer, after)
}

// AddStatusSink adds a taker of pod statuses: a node.StatusSink, or a
// constructor that returns one.
func AddStatusSink(sink any) Option {
	return addPlain[node.StatusSink]("AddStatusSink", "statussinks", sink)
}

// AddEventSink adds a taker of events: a node.EventSink, or a constructor that
// returns one.
func AddEventSink(sink any) Option {
	return addPlain[node.EventSink]("AddEventSink", "eventsinks", sink)
}

// AddTo adds to an ordered group of another module, which collects values of
// type node.Ordered[I] under that name: an I, or a constructor that returns one.
// Where that module is not there, it does nothing.
func AddTo[I any](group, name string, value any, after ...string) Option {
	return func(s *settings) {
		s.member(memberOf[I](fmt.Sprintf("%s %q", group, name), group, name, after), value, nil)
	}
}

// add makes a member, or its constructor, a member of an ordered group.
func add[I any](verb, group, name string, m any, after []string) Option {
	return func(s *settings) {
		what := fmt.Sprintf("%s(%q)", verb, name)
		s.member(memberOf[I](what, group, name, after), m, s.effect(what))
	}
}

func memberOf[I any](what, group, name string, after []string) member {
	return member{
		what: what, group: group, seam: reflect.TypeFor[I](), result: reflect.TypeFor[node.Ordered[I]](),
		finish: func(part any) any { return node.Ordered[I]{Name: name, After: after, Value: part.(I)} },
	}
}

// effect is one that must happen.
func (s *settings) effect(what string) *effect {
	e := &effect{what: what}
	s.effects = append(s.effects, e)
	return e
}

// addPlain makes a member, or its constructor, a member of a group without order.
func addPlain[I any](verb, group string, m any) Option {
	return func(s *settings) {
		s.member(member{
			what: verb, group: group, seam: reflect.TypeFor[I](), result: reflect.TypeFor[I](),
			finish: func(part any) any { return part },
		}, m, s.effect(verb))
	}
}

// member is one value of a group.
type member struct {
	what   string // such as AddHook("audit"), for errors
	group  string
	seam   reflect.Type
	result reflect.Type // what the group collects
	finish func(part any) any
}

// member provides one value of a group: a function with the constructor's
// parameters, or none, whose result the group collects. Nil e: that may have no
// effect.
func (s *settings) member(m member, value any, e *effect) {
	constructor, err := asConstructor(m.seam, value)
	if err != nil {
		s.fail(fmt.Errorf("%s: %w", m.what, err))
		return
	}
	provider := makeFunc(parameters(constructor), m.result, func(args []reflect.Value) (any, error) {
		if e != nil {
			e.happened.Store(true)
		}
		part, err := construct(constructor, args)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.what, err)
		}
		return m.finish(part), nil
	})
	s.groups = append(s.groups, fx.Provide(fx.Annotate(provider, fx.ResultTags(`group:"`+m.group+`"`))))
}

// asConstructor turns a ready value into a constructor of it.
func asConstructor(seam reflect.Type, value any) (any, error) {
	t := reflect.TypeOf(value)
	if t != nil && t.Implements(seam) {
		v := reflect.ValueOf(value)
		if isNil(v) {
			return nil, fmt.Errorf("%v is nil", t)
		}
		return reflect.MakeFunc(reflect.FuncOf(nil, []reflect.Type{t}, false), func([]reflect.Value) []reflect.Value {
			return []reflect.Value{v}
		}).Interface(), nil
	}
	if t != nil && t.Kind() != reflect.Func {
		return nil, fmt.Errorf("%v does not implement %v: %s", t, seam, missing(t, seam))
	}
	return value, checkConstructor(seam, value)
}

// GroupNames are the names in the ordered groups, in the order in which they run.
type GroupNames struct {
	Sources, Mutators, Admitters, Hooks []string

	SandboxMutators, ContainerMutators, StatusMutators []string
}

func groupNames(p node.Parts) (names GroupNames, err error) {
	return names, errors.Join(
		sortNames(&names.Sources, "source", p.Sources),
		sortNames(&names.Mutators, "mutator", p.Mutators),
		sortNames(&names.Admitters, "admitter", p.Admitters),
		sortNames(&names.Hooks, "hook", p.Hooks),
		sortNames(&names.SandboxMutators, "sandbox mutator", p.SandboxMutators),
		sortNames(&names.ContainerMutators, "container mutator", p.ContainerMutators),
		sortNames(&names.StatusMutators, "status mutator", p.StatusMutators),
	)
}

func sortNames[T any](names *[]string, kind string, members []node.Ordered[T]) error {
	sorted, err := node.InOrder(kind, members)
	for _, m := range sorted {
		*names = append(*names, m.Name)
	}
	return err
}

// Users are the vendor's ways to know callers of the agent's API and to say what
// they may do, for the program that serves it.
type Users struct {
	Authenticators []node.Ordered[server.Authenticator]
	Authorizers    []node.Ordered[server.Authorizer]
}

type routes []server.Route

// sortRoutes tries the patterns out, as http.ServeMux panics on bad ones.
func sortRoutes(members []node.Ordered[http.Handler]) (routes, error) {
	sorted, err := node.InOrder("route", members)
	if err != nil {
		return nil, err
	}
	var out routes
	mux := http.NewServeMux()
	for _, m := range sorted {
		err := tasks.Contain("route", func() error { mux.Handle(m.Name, m.Value); return nil })
		var bad *tasks.PanicError
		if errors.As(err, &bad) {
			return nil, fmt.Errorf("AddHTTPRoute(%q): %v", m.Name, bad.Value)
		}
		out = append(out, server.Route{Pattern: m.Name, Handler: m.Value})
	}
	return out, nil
}
