package nodefx

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"go.uber.org/fx"

	"nodekit.dev/internal/fxrun"
	"nodekit.dev/node"
	"nodekit.dev/node/handlers"
	"nodekit.dev/node/podspec"
	"nodekit.dev/node/server"
	"nodekit.dev/node/wire"
	"nodekit.dev/probe/probefx"
	"nodekit.dev/resources/resourcesfx"
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
		probefx.Module(),
		fx.Decorate(complete),
		cluster(),
		fx.Provide(newLifecycle, newThisNode, builder, specs, handlerRunner, newProbeEvents, probeConfig, prober, newNode),
	)
}

// complete is asked for before any part is made, so the lock that it adds is
// the first thing that starts and the last that stops.
func complete(lc fx.Lifecycle, r *fxrun.Runner, cfg wire.Config, this *wire.ThisNode) (wire.Config, error) {
	cfg, err := cfg.Complete()
	if err != nil {
		return cfg, err
	}
	var unlock func() error
	r.Hold(lc, "root-lock",
		func(context.Context) (err error) {
			unlock, err = wire.Lock(cfg.RootDir, cfg.NodeName)
			return err
		},
		func(context.Context) error { return unlock() },
	)
	return cfg.Around(this), nil
}

func newThisNode() *wire.ThisNode { return &wire.ThisNode{} }

func builder(cfg wire.Config, features runtimefx.Features) (*podspec.Builder, error) {
	if cfg.Spec.Features == nil {
		cfg.Spec.Features = features
	}
	return podspec.New(cfg.Spec)
}

func specs(b *podspec.Builder) node.Specs { return b }

func handlerRunner(log *slog.Logger, execer handlers.Execer) (node.HookRunner, error) {
	return handlers.New(handlers.Default(), execer, log.With("part", "handlers"))
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
	Prober    node.Prober

	VolumeStats wire.VolumeStats

	Environment    node.Environment
	RuntimeClasses node.RuntimeClasses
	UserNamespaces node.UserNamespaces

	// RunningLogs learns from what the watcher shows, for log rotation.
	RunningLogs *wire.RunningLogs
	// ProbeEvents tells of probes, where the prober is the default one.
	ProbeEvents *wire.ProbeEvents
	// ThisNode and Contents stand between those of Cluster and the others.
	ThisNode *wire.ThisNode
	Contents *wire.Contents
	Cluster  clusterParts

	Sources           []node.Ordered[node.Source]           `group:"sources"`
	Mutators          []node.Ordered[node.Mutator]          `group:"mutators"`
	Admitters         []node.Ordered[node.Admitter]         `group:"admitters"`
	Hooks             []node.Ordered[node.Hook]             `group:"hooks"`
	SandboxMutators   []node.Ordered[node.SandboxMutator]   `group:"sandboxmutators"`
	ContainerMutators []node.Ordered[node.ContainerMutator] `group:"containermutators"`
	StatusMutators    []node.Ordered[node.StatusMutator]    `group:"statusmutators"`
	StatusSinks       []node.StatusSink                     `group:"statussinks"`
	EventSinks        []node.EventSink                      `group:"eventsinks"`
	Routes            []node.Ordered[http.Handler]          `group:"routes"`
	Authenticators    []node.Ordered[server.Authenticator]  `group:"authenticators"`
	Authorizers       []node.Ordered[server.Authorizer]     `group:"authorizers"`
}

// result is the node, and what an Agent tells about its groups.
type result struct {
	fx.Out

	Node   *node.Node
	Groups GroupNames
	Routes routes
	Users  Users
}

// drainBudget is how long the node's stop takes at most where it drains: the
// drain, and a little for what comes after it.
func drainBudget(cfg node.Config) time.Duration {
	if !cfg.DrainOnStop {
		return 0
	}
	return cfg.DrainTimeout + 5*time.Second
}

// newNode is the root of the graph: all seams hang on it. Cfg stands before the
// parts so that it is complete before any of them is made.
func newNode(lc fx.Lifecycle, r *fxrun.Runner, cfg wire.Config, log *slog.Logger, p parts) (result, error) {
	np := node.Parts{
		Engine: wire.RemovingFiles(p.Engine, cfg), Watcher: p.RunningLogs.Watching(p.Watcher), Puller: p.Puller, Specs: p.Specs,
		Mounter:   wire.RemovingLogs(p.Mounter, cfg.PodLogsDir, cfg.Host.LogLinksDir),
		Allocator: p.Allocator, Cgroups: p.Cgroups, Handlers: p.Handlers, Prober: p.Prober,
		Environment: p.Environment, RuntimeClasses: p.RuntimeClasses, UserNamespaces: p.UserNamespaces,
		Sources: p.Sources, Mutators: p.Mutators, Admitters: p.Admitters, Hooks: p.Hooks,
		SandboxMutators: p.SandboxMutators, ContainerMutators: p.ContainerMutators, StatusMutators: p.StatusMutators,
		StatusSinks: p.StatusSinks, EventSinks: p.EventSinks, PodDirs: wire.PodDirs(cfg), Observer: cfg.NodeObserver, Log: log,
	}
	if dir := cfg.Host.LogLinksDir; dir != "" {
		np.Hooks = append(np.Hooks, node.Ordered[node.Hook]{Name: "log-links", Value: wire.LogLinks(dir, cfg.PodLogsDir, log.With("part", "log-links"))})
	}
	np.StatusMutators = append(np.StatusMutators, wire.VolumeHealth(cfg, p.VolumeStats)...)
	joined := p.Cluster.wired()
	admitters, attach, err := wire.Admitters(cfg, joined, p.Admitters)
	if err != nil {
		return result{}, err
	}
	np.Admitters = admitters
	tell := wire.Join(joined, p.Contents, &np)
	n, err := node.New(cfg.Node, np)
	if err != nil {
		return result{}, err
	}
	attach(n)
	tell(n)
	p.ProbeEvents.Attach(n)
	p.ThisNode.Keep(joined.Registration)
	routes, err := sortRoutes(p.Routes)
	if err != nil {
		return result{}, err
	}
	groups, err := groupNames(np)
	if err != nil {
		return result{}, err
	}
	host, err := wire.HostParts(cfg)
	if err != nil {
		return result{}, err
	}
	for _, part := range host {
		r.Run(lc, part.Name, part.Run)
	}
	r.RunAtLeast(lc, "node", drainBudget(cfg.Node), n.Run)
	return result{Node: n, Groups: groups, Routes: routes, Users: Users{p.Authenticators, p.Authorizers}}, nil
}
