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
	"nodekit.dev/node/register"
	"nodekit.dev/node/server"
	"nodekit.dev/node/wire"
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
		fx.Decorate(complete),
		fx.Provide(newLifecycle, builder, specs, handlerRunner, newMember, newNode),
	)
}

// complete is asked for before any part is made, so the lock that it adds is
// the first thing that starts and the last that stops.
func complete(lc fx.Lifecycle, r *fxrun.Runner, cfg wire.Config) (wire.Config, error) {
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
	return cfg, nil
}

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

	// RunningLogs learns from what the watcher shows, for log rotation.
	RunningLogs *wire.RunningLogs
	// Member is nil where the agent stands alone.
	Member   *wire.Member
	Contents *wire.Contents

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

// newMember makes what talks to the API server, where the agent is to.
func newMember(cfg wire.Config, w node.Watcher, facts runtimefx.NodeFacts, groups memberGroups) (*wire.Member, error) {
	return wire.NewMember(cfg, wire.MemberParts{
		Runtime: w.Status, Images: facts.Images, PodCIDR: facts.PodCIDR,
		Setters: groups.Setters, Resources: groups.Resources,
	})
}

// memberGroups are what a vendor adds to the Node object.
type memberGroups struct {
	fx.In

	Setters   []node.Ordered[register.Setter]      `group:"nodesetters"`
	Resources []node.Ordered[register.Contributor] `group:"noderesources"`
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
		Allocator: p.Allocator, Cgroups: p.Cgroups, Handlers: p.Handlers,
		Sources: p.Sources, Mutators: p.Mutators, Admitters: p.Admitters, Hooks: p.Hooks,
		SandboxMutators: p.SandboxMutators, ContainerMutators: p.ContainerMutators, StatusMutators: p.StatusMutators,
		StatusSinks: append(p.StatusSinks, p.Contents), EventSinks: p.EventSinks, PodDirs: wire.PodDirs(cfg), Observer: cfg.NodeObserver, Log: log,
	}
	if dir := cfg.Host.LogLinksDir; dir != "" {
		np.Hooks = append(np.Hooks, node.Ordered[node.Hook]{Name: "log-links", Value: wire.LogLinks(dir, cfg.PodLogsDir, log.With("part", "log-links"))})
	}
	admitters, attach, err := wire.Admitters(cfg, p.Member, p.Admitters)
	if err != nil {
		return result{}, err
	}
	np.Admitters = admitters
	if np.UserNamespaces, err = wire.Users(cfg); err != nil {
		return result{}, err
	}
	if err := p.Member.Join(&np); err != nil {
		return result{}, err
	}
	n, err := node.New(cfg.Node, np)
	if err != nil {
		return result{}, err
	}
	attach(n)
	p.Member.Attach(n)
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
	for _, part := range append(host, p.Member.Runs(p.Contents)...) {
		r.Run(lc, part.Name, part.Run)
	}
	r.RunAtLeast(lc, "node", drainBudget(cfg.Node), n.Run)
	return result{Node: n, Groups: groups, Routes: routes, Users: Users{p.Authenticators, p.Authorizers}}, nil
}
