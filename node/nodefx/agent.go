package nodefx

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"go.uber.org/dig"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"nodekit.dev/internal/fxrun"
	"nodekit.dev/node"
	"nodekit.dev/node/server"
	"nodekit.dev/runtime/runtimefx"
)

// Agent is one node agent, wired. Its methods are safe for concurrent use.
type Agent struct {
	app    *fx.App
	node   *node.Node
	runner *fxrun.Runner
	graph  fx.DotGraph
	groups GroupNames
	routes routes
	users  Users
	facts  runtimefx.NodeFacts

	mu    sync.Mutex
	state state
}

type state int

const (
	fresh state = iota
	started
	stopped
)

// New builds the graph and checks it: every part is constructed, none is
// started, nothing is opened. An error names what is wrong with the options.
// An agent that is never started needs no Stop.
func New(opts ...Option) (*Agent, error) {
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	a := &Agent{runner: fxrun.New(s.budget)}
	graph, err := s.graph(a)
	if err != nil {
		return nil, err
	}
	a.app = fx.New(graph)
	if err := a.app.Err(); err != nil {
		return nil, readable(err)
	}
	if err := guard(s.effects); err != nil {
		return nil, err
	}
	return a, nil
}

// graph is the whole fx.Option of an agent.
func (s *settings) graph(a *Agent) (fx.Option, error) {
	decorators := []fx.Option{fx.Decorate(a.runner.Guard)}
	for _, o := range s.overrides {
		d, err := o.decorate()
		if err != nil {
			return nil, err
		}
		decorators = append(decorators, d)
	}
	for _, c := range s.configs {
		decorators = append(decorators, c.decorate())
	}
	if replaces[node.Engine](s) { // what the CRI runtime can do says nothing of that one
		decorators = append(decorators, fx.Decorate(
			func() runtimefx.Features { return nil },
			func() runtimefx.NodeFacts { return runtimefx.NodeFacts{} },
		))
	}
	return fx.Options(
		fx.WithLogger(s.eventLogger),
		fx.RecoverFromPanics(),
		fx.StartTimeout(time.Duration(math.MaxInt64)),
		fx.StopTimeout(time.Duration(math.MaxInt64)),
		fx.Supply(s.config, a.runner),
		fx.Provide(s.logger),
		Module(),
		fx.Options(s.extra...),
		fx.Options(s.groups...),
		fx.Options(decorators...),
		fx.Populate(&a.node, &a.graph, &a.groups, &a.routes, &a.users, &a.facts),
		fx.Options(s.populate...),
	), nil
}

func (s *settings) logger() *slog.Logger {
	if s.config.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.config.Log
}

func (s *settings) eventLogger(log *slog.Logger) fxevent.Logger {
	if s.events == nil {
		return fxevent.NopLogger
	}
	return s.events(log)
}

// readable takes fx's layers off an error, so that the user sees what a
// constructor said, or which type nobody provides.
func readable(err error) error {
	if root := dig.RootCause(err); root != nil {
		return root
	}
	return err
}

// Start starts every part and returns; it does not wait for Ready. When a part
// does not start, those before it are stopped again. Ctx bounds the start and
// nothing else. An agent is started once: starting again after Stop is an
// error, make a new one.
func (a *Agent) Start(ctx context.Context) error {
	if !a.advance(fresh, started) {
		return errors.New("this agent was started before; make a new one with nodefx.New")
	}
	return a.app.Start(fxrun.Detach(ctx))
}

// Stop stops every part in reverse order and waits for each within its budget,
// or until ctx ends. Every stop is called, whatever the others do. Containers
// run on, unless the node's configuration says to drain. A second Stop, and one
// of an agent that was not started, does nothing.
func (a *Agent) Stop(ctx context.Context) error {
	if !a.advance(started, stopped) {
		return nil
	}
	return a.app.Stop(fxrun.Detach(ctx))
}

// advance makes the one step that is allowed.
func (a *Agent) advance(from, to state) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state != from {
		return false
	}
	a.state = to
	return true
}

// Ready is closed when every source has reported and the runtime was read.
func (a *Agent) Ready() <-chan struct{} { return a.node.Ready() }

// Done gives the error of the first part that ended by itself. It never gives
// a value while all is well.
func (a *Agent) Done() <-chan error { return a.runner.Failed() }

// Node is the running node, for its snapshots and traces.
func (a *Agent) Node() *node.Node { return a.node }

// Parts names what Start runs, in order.
func (a *Agent) Parts() []string { return a.runner.Names() }

// Groups names the members of the ordered groups, in the order they run.
func (a *Agent) Groups() GroupNames { return a.groups }

// Routes are what AddHTTPRoute added, by pattern, for the program's server.
func (a *Agent) Routes() []server.Route { return slices.Clone(a.routes) }

// Graph is the object graph in DOT. It shows providers, not overrides.
func (a *Agent) Graph() string { return string(a.graph) }
