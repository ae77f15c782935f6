package nodefx

import (
	"context"
	"log/slog"

	"go.uber.org/fx"

	"nodekit.dev/internal/fxrun"
	"nodekit.dev/node"
	"nodekit.dev/node/handlers"
	"nodekit.dev/node/podspec"
	"nodekit.dev/node/wire"
	"nodekit.dev/resources/resourcesfx"
	"nodekit.dev/runtime/cri"
	"nodekit.dev/runtime/runtimefx"
	"nodekit.dev/volume/volumefx"
)

// Module is every default part of an agent. New uses it; a vendor who builds a
// graph of their own around the parts may too. It asks for a wire.Config, a
// *slog.Logger and a *fxrun.Runner.
func Module() fx.Option {
	return fx.Options(
		runtimefx.Module(),
		volumefx.Module(),
		resourcesfx.Module(),
		fx.Decorate(wire.Config.Complete),
		fx.Provide(builder, specs, handlerRunner, newNode),
	)
}

func builder(cfg wire.Config, features runtimefx.Features) (*podspec.Builder, error) {
	if cfg.Spec.Features == nil {
		cfg.Spec.Features = features
	}
	return podspec.New(cfg.Spec)
}

func specs(b *podspec.Builder) node.Specs { return b }

func handlerRunner(log *slog.Logger, c *cri.Client) (node.HookRunner, error) {
	return handlers.New(handlers.Default(), wire.Execer(c), log.With("part", "handlers"))
}

// parts is all that a node calls, collected from the graph.
type parts struct {
	fx.In

	Engine    node.Engine
	Watcher   node.Watcher
	Puller    node.Puller
	Mounter   node.Mounter
	Specs     node.Specs
	Allocator node.Allocator
	Cgroups   node.Cgroups
	Handlers  node.HookRunner

	Sources     []node.Ordered[node.Source]   `group:"sources"`
	Mutators    []node.Ordered[node.Mutator]  `group:"mutators"`
	Admitters   []node.Ordered[node.Admitter] `group:"admitters"`
	Hooks       []node.Ordered[node.Hook]     `group:"hooks"`
	StatusSinks []node.StatusSink             `group:"StatusSink"`
	EventSinks  []node.EventSink              `group:"EventSink"`
}

// nodeResult is the node, and the names of the groups as they were sorted.
type nodeResult struct {
	fx.Out

	Node   *node.Node
	Groups GroupNames
}

// newNode is the root of the graph: all seams hang on it.
func newNode(lc fx.Lifecycle, r *fxrun.Runner, cfg wire.Config, log *slog.Logger, p parts) (nodeResult, error) {
	np := node.Parts{
		Engine: p.Engine, Watcher: p.Watcher, Puller: p.Puller, Mounter: p.Mounter, Specs: p.Specs,
		Allocator: p.Allocator, Cgroups: p.Cgroups, Handlers: p.Handlers,
		Sources: p.Sources, Mutators: p.Mutators, Admitters: p.Admitters, Hooks: p.Hooks,
		StatusSinks: p.StatusSinks, EventSinks: p.EventSinks, PodDirs: wire.PodDirs(cfg.RootDir), Log: log,
	}
	if dir := cfg.Host.LogLinksDir; dir != "" {
		np.Hooks = append(np.Hooks, node.Ordered[node.Hook]{Name: "log-links", Value: wire.LogLinks(dir, cfg.PodLogsDir)})
	}
	n, err := node.New(cfg.Node, np)
	if err != nil {
		return nodeResult{}, err
	}
	lockRoot(lc, cfg)
	r.Run(lc, "node", n.Run)
	names, err := groupNames(np)
	return nodeResult{Node: n, Groups: names}, err
}

// lockRoot holds the root directory from start to stop.
func lockRoot(lc fx.Lifecycle, cfg wire.Config) {
	var unlock func() error
	lc.Append(fx.Hook{
		OnStart: func(context.Context) (err error) {
			unlock, err = wire.Lock(cfg.RootDir, cfg.NodeName)
			return err
		},
		OnStop: func(context.Context) error { return unlock() },
	})
}

func groupNames(p node.Parts) (names GroupNames, err error) {
	if names.Mutators, err = sortedNames("mutator", p.Mutators); err != nil {
		return names, err
	}
	if names.Admitters, err = sortedNames("admitter", p.Admitters); err != nil {
		return names, err
	}
	if names.Hooks, err = sortedNames("hook", p.Hooks); err != nil {
		return names, err
	}
	names.Sources, err = sortedNames("source", p.Sources)
	return names, err
}

func sortedNames[T any](kind string, members []node.Ordered[T]) ([]string, error) {
	sorted, err := node.InOrder(kind, members)
	var names []string
	for _, m := range sorted {
		names = append(names, m.Name)
	}
	return names, err
}
