package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/node"
	"nodekit.dev/node/handlers"
	"nodekit.dev/node/podspec"
	"nodekit.dev/probe"
	"nodekit.dev/runtime/cri"
	"nodekit.dev/runtime/images"
	"nodekit.dev/runtime/logs"
	"nodekit.dev/runtime/observe"
	"nodekit.dev/volume"
)

// Agent is a node agent, wired by hand. Use New.
type Agent struct {
	cfg      Config
	node     *node.Node
	parts    Parts
	client   *cri.Client // nil where nobody needs the CRI
	thisNode ThisNode
	contents Contents
	probes   ProbeEvents
	runs     []Part
	close    []func() error
	ran      atomic.Bool
}

// New checks the configuration and makes every part that no option gave. It
// does no I/O beyond reading facts about the machine; Run does the rest.
func New(cfg Config, opts ...Option) (*Agent, error) {
	cfg, err := cfg.Complete()
	if err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	a := &Agent{parts: Parts{Parts: node.Parts{Observer: cfg.NodeObserver, Log: cfg.Log}}}
	a.cfg = cfg.Around(&a.thisNode)
	for _, o := range opts {
		o(&a.parts)
	}
	a.hooks()
	for _, fill := range []func() error{a.runtime, a.prober, a.cluster, a.mounts, a.measures, a.resources, a.makeNode} {
		if err := fill(); err != nil {
			return nil, fmt.Errorf("agent: %w", errors.Join(err, a.closeAll()))
		}
	}
	return a, nil
}

// cluster makes what the agent has of its cluster, where it is to join one, and
// local objects.
func (a *Agent) cluster() error {
	p := &a.parts
	folder, runs, err := LocalObjects(a.cfg, &a.contents)
	if err != nil {
		return err
	}
	a.runs = append(a.runs, runs...)
	ownMaps, ownSecrets := p.ConfigMaps != nil, p.Secrets != nil
	if p.Join != nil {
		join := Joining{Config: a.cfg, Parts: p, ThisNode: &a.thisNode, Contents: &a.contents}
		if a.client != nil {
			join.Images, join.PodCIDR = a.client.ListImages, a.client.UpdateRuntimeConfig
		}
		runs, err := p.Join(join)
		if err != nil {
			return err
		}
		a.runs = append(a.runs, runs...)
	}
	if !ownMaps {
		p.ConfigMaps = LocalConfigMaps(folder, p.ConfigMaps, &a.contents)
	}
	if !ownSecrets {
		p.Secrets = LocalSecrets(folder, p.Secrets, &a.contents)
	}
	a.thisNode.Keep(p.Registration)
	return nil
}

// makeNode puts everything together.
func (a *Agent) makeNode() error {
	attach, err := a.parts.complete(a.cfg, &a.contents)
	if err != nil {
		return err
	}
	if a.node, err = node.New(a.cfg.Node, a.parts.Parts); err != nil {
		return err
	}
	attach(a.node)
	a.probes.Attach(a.node)
	host, err := HostParts(a.cfg)
	if err != nil {
		return err
	}
	a.runs = append(a.runs, host...)
	return nil
}

// complete adds to the parts of a node what the agent puts between and around
// them. The second result is given the node.
func (p *Parts) complete(cfg Config, contents *Contents) (func(*node.Node), error) {
	admitters, attach, err := Admitters(cfg, p.ClusterParts, p.Admitters)
	if err != nil {
		return nil, err
	}
	p.Admitters = admitters
	if p.UserNamespaces == nil {
		if p.UserNamespaces, err = Users(cfg); err != nil {
			return nil, err
		}
	}
	if p.Environment == nil {
		if p.Environment, err = Environment(p.ClusterParts, p.Mounter); err != nil {
			return nil, err
		}
	}
	tell := Join(p.ClusterParts, contents, &p.Parts)
	p.Engine = RemovingFiles(p.Engine, cfg)
	p.Mounter = RemovingLogs(p.Mounter, cfg.PodLogsDir, cfg.Host.LogLinksDir)
	return func(n *node.Node) { attach(n); tell(n) }, nil
}

// Join adds what there is of a cluster to the parts of a node: the source of
// its pods, where statuses and events go, and the end of all that a pod refers
// to. The result is to be given the node before it runs.
func Join(c ClusterParts, contents *Contents, p *node.Parts) func(*node.Node) {
	if s := c.PodSource; s != nil {
		p.Sources = append(p.Sources, node.Ordered[node.Source]{Name: s.Name(), Value: s})
	}
	if c.StatusWriter != nil {
		p.StatusSinks = append(p.StatusSinks, c.StatusWriter)
	}
	p.StatusSinks = append(p.StatusSinks, contents)
	if c.EventWriter != nil {
		p.EventSinks = append(p.EventSinks, c.EventWriter)
	}
	p.Hooks = append(p.Hooks, contents.forgetting()...)
	return func(n *node.Node) {
		contents.Attach(n)
		if c.StatusWriter != nil {
			c.StatusWriter.Attach(n)
		}
	}
}

// Node is the running node, for its snapshots and traces.
func (a *Agent) Node() *node.Node { return a.node }

// Ready is closed when every source has reported and the runtime was read.
func (a *Agent) Ready() <-chan struct{} { return a.node.Ready() }

// Run locks the root directory, runs every part, and returns after all of them
// ended: with nil when ctx did, else with what went wrong. Containers run on,
// unless Config.Node says to drain. An agent runs once; make a new one to run
// again.
func (a *Agent) Run(ctx context.Context) (err error) {
	if a.ran.Swap(true) {
		return errors.New("agent: Run was called before; make a new one with wire.New")
	}
	defer func() { err = errors.Join(err, a.closeAll()) }()
	unlock, err := Lock(a.cfg.RootDir, a.cfg.NodeName)
	if err != nil {
		return err
	}
	a.close = append(a.close, unlock)

	// The node stops first: a drain still needs the runtime's events.
	helpers := runParts(context.WithoutCancel(ctx), a.runs)
	nodeRun := tasks.New(ctx)
	nodeRun.Go("node", a.node.Run)
	stopWith(helpers.Group, nodeRun)
	err = nodeRun.Wait()
	return errors.Join(err, helpers.end())
}

// stopWith ends the node when a part it depends on has failed.
func stopWith(helpers, nodeRun *tasks.Group) {
	nodeRun.Go("watch-parts", func(ctx context.Context) error {
		select {
		case <-ctx.Done():
		case <-helpers.Context().Done():
			nodeRun.Stop()
		}
		return nil
	})
}

func (a *Agent) closeAll() error {
	var errs []error
	for i := len(a.close) - 1; i >= 0; i-- {
		errs = append(errs, a.close[i]())
	}
	a.close = nil
	return errors.Join(errs...)
}

func (a *Agent) log(part string) *slog.Logger { return a.cfg.Log.With("part", part) }

// runtime makes the CRI client and all that talks to it, if anybody needs it.
func (a *Agent) runtime() error {
	p := &a.parts
	if p.Engine != nil && p.Watcher != nil && p.Puller != nil && (p.Handlers != nil || p.Execer != nil) {
		return a.handlers()
	}
	client, err := cri.New(a.cfg.CRI)
	if err != nil {
		return err
	}
	a.client = client
	a.close = append(a.close, client.Close)
	if p.Execer == nil {
		p.Execer = Execer(client)
	}
	return errors.Join(a.watcher(client), a.engine(client), a.puller(client), a.handlers())
}

func (a *Agent) watcher(client *cri.Client) error {
	if a.parts.Watcher != nil {
		return nil
	}
	observer, err := observe.New(a.cfg.Observe, client)
	if err != nil {
		return err
	}
	a.parts.Watcher = Watcher(observer)
	a.runs = append(a.runs, Part{"runtime-observe", observer.Run})
	return nil
}

// engine also rotates logs, as it is the engine whose containers write them, and
// whose cgroup driver must be the agent's.
func (a *Agent) engine(client *cri.Client) error {
	if a.parts.Engine != nil {
		return nil
	}
	a.parts.Engine = Engine(client)
	if a.cfg.Spec.Features == nil {
		a.cfg.Spec.Features = Features(client)
	}
	running := NewRunningLogs(a.cfg.PodLogsDir)
	rotator, err := logs.NewRotator(a.cfg.Logs, running, client)
	if err != nil {
		return err
	}
	running.OnChange(rotator.Refresh)
	a.parts.Watcher = running.Watching(a.parts.Watcher)
	a.runs = append(a.runs, Part{"log-rotation", rotator.Run}, Part{"cgroup-driver", CheckCgroupDriver(a.cfg, client)})
	if cidr := a.cfg.PodCIDR; cidr != "" {
		a.runs = append(a.runs, Part{"pod-cidr", TellPodCIDR(cidr, client.UpdateRuntimeConfig, a.log("pod-cidr"))})
	}
	return nil
}

func (a *Agent) puller(client *cri.Client) error {
	if a.parts.Puller != nil {
		return nil
	}
	cfg := a.cfg.Images
	if a.parts.PullAuth != nil {
		cfg.Auth = a.parts.PullAuth
	}
	p, err := images.New(cfg, client)
	if err != nil {
		return err
	}
	a.parts.Puller = Puller(p, client)
	return nil
}

func (a *Agent) handlers() error {
	if a.parts.Handlers != nil {
		return nil
	}
	h, err := handlers.New(handlers.Default(), a.parts.Execer, a.log("handlers"))
	if err != nil {
		return err
	}
	a.parts.Handlers = h
	return nil
}

// prober makes the probes of containers, and keeps what they find.
func (a *Agent) prober() error {
	if a.parts.Prober != nil {
		return nil
	}
	cfg, err := ProbeConfig(a.cfg, a.parts.Execer, a.parts.ProbeParts, &a.probes)
	if err != nil {
		return err
	}
	manager, err := probe.New(cfg)
	if err != nil {
		return err
	}
	p := NewProber(a.cfg, manager)
	a.parts.Prober = p
	a.runs = append(a.runs, Part{"probes", manager.Run}, Part{"probe-results", p.Run})
	return nil
}

// mounts makes the specs and the mounter: the mounter asks the specs for the
// hosts file.
func (a *Agent) mounts() error {
	builder, err := podspec.New(a.cfg.Spec)
	if err != nil {
		return err
	}
	if a.parts.Specs == nil {
		a.parts.Specs = builder
	}
	if a.parts.PodDirs == nil {
		a.parts.PodDirs = PodDirs(a.cfg)
	}
	if a.parts.Mounter != nil {
		return nil
	}
	sources := Sources(a.cfg, a.parts.ClusterParts, &a.thisNode)
	sources.Images = VolumeImages(a.parts.Puller, a.parts.EventWriter)
	all, err := VolumePlugins(a.parts.VolumePlugins, sources)
	if err != nil {
		return err
	}
	cfg, err := a.contents.Labeling(a.cfg, VolumeConfig(a.cfg, a.parts.EventWriter, a.parts.Claims, &a.contents))
	if err != nil {
		return err
	}
	drivers, runs, err := CSI(a.cfg, a.parts.ClusterParts, a.parts.CSIConnector, &a.contents)
	if err != nil {
		return err
	}
	a.runs = append(a.runs, runs...)
	manager, err := volume.New(cfg, append(WithQuotas(a.cfg, all), drivers), a.log("volume"))
	if err != nil {
		return err
	}
	a.contents.Keep(manager)
	a.runs = append(a.runs, Part{"volume-content", manager.Run})
	a.parts.Mounter = Mounter(manager, builder)
	return nil
}

// measures makes what measures the volumes.
func (a *Agent) measures() error {
	if a.parts.VolumeStats == nil {
		from, runs, err := MeasureVolumes(a.cfg, &a.contents, a.parts.VolumeReaders)
		if err != nil {
			return err
		}
		a.parts.VolumeStats, a.runs = from, append(a.runs, runs...)
	}
	a.parts.StatusMutators = append(a.parts.StatusMutators, VolumeHealth(a.cfg, a.parts.VolumeStats)...)
	return nil
}

// VolumeStats are what the volumes of pods hold, for who shows it.
func (a *Agent) VolumeStats() VolumeStats { return a.parts.VolumeStats }

func (a *Agent) resources() error {
	if a.parts.Cgroups != nil {
		return nil
	}
	pods, runs, err := Cgroups(a.cfg, a.cfg.Log)
	a.parts.Cgroups, a.runs = pods, append(a.runs, runs...)
	return err
}

func (a *Agent) hooks() {
	if dir := a.cfg.Host.LogLinksDir; dir != "" {
		a.parts.Hooks = append(a.parts.Hooks, node.Ordered[node.Hook]{
			Name: "log-links", Value: LogLinks(dir, a.cfg.PodLogsDir, a.log("log-links")),
		})
	}
}
