// Package clusterfx makes an agent of node/nodefx a member of a cluster:
//
//	cfg := cluster.Default()
//	cfg.Certs.Kubeconfig = "/etc/kubernetes/kubelet.conf"
//	agent, err := nodefx.New(nodefx.Config(wireConfig), clusterfx.Join(cfg))
//
// An agent that stands alone does not import it, and so links nothing that talks
// to an API server. What talks to it are defaults of seams like any other: with
// [nodefx.Replace] they are neither built nor run. It holds no logic.
package clusterfx

import (
	"go.uber.org/fx"

	"nodekit.dev/node"
	"nodekit.dev/node/apipods"
	"nodekit.dev/node/cluster"
	"nodekit.dev/node/environment"
	"nodekit.dev/node/events"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/objects/apicache"
	"nodekit.dev/node/register"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime/runtimefx"
	"nodekit.dev/volume/csi"
	"nodekit.dev/volume/plugins"
)

// Join makes the agent a member of the cluster that the configuration names.
func Join(cfg cluster.Config) nodefx.Option {
	return nodefx.Options(
		nodefx.Supply(cfg),
		nodefx.Provide(
			complete, connection, cache, recorder, statuses, source, registrar,
			configMaps, secrets, services, tokens, trustBundles, podCertificates, runtimeClasses,
			csiDrivers, claimsOf, nodeGetter, registration, podSource, statusWriter, eventWriter,
		),
	)
}

// Configure changes the cluster's configuration, whoever made it: it is called
// once, before any part is made. Where the agent stands alone it does nothing.
func Configure(edit func(*cluster.Config)) nodefx.Option { return nodefx.ConfigureOf(edit) }

// AddNodeSetter adds a setter of the Node object: a register.Setter, such as a
// register.SetterFunc, or a constructor that returns one. One with the name of a
// stock setter takes its place. Where the agent stands alone it does nothing.
func AddNodeSetter(name string, setter any, after ...string) nodefx.Option {
	return nodefx.AddTo[register.Setter]("nodesetters", name, setter, after...)
}

// AddNodeResources adds a source of capacity to the Node object: a
// register.Contributor, or a constructor that returns one. Where the agent
// stands alone it does nothing.
func AddNodeResources(name string, contributor any, after ...string) nodefx.Option {
	return nodefx.AddTo[register.Contributor]("noderesources", name, contributor, after...)
}

// completed is the configuration, with what it shares with the agent's.
type completed struct{ cluster.Config }

// groups are what vendors add to the Node object.
type groups struct {
	fx.In

	Setters   []node.Ordered[register.Setter]      `group:"nodesetters"`
	Resources []node.Ordered[register.Contributor] `group:"noderesources"`
}

func complete(agent wire.Config, cfg cluster.Config, vendors groups) completed {
	cfg = cfg.Complete(agent)
	cfg.Setters = append(cfg.Setters[:len(cfg.Setters):len(cfg.Setters)], vendors.Setters...)
	cfg.Resources = append(cfg.Resources[:len(cfg.Resources):len(cfg.Resources)], vendors.Resources...)
	return completed{cfg}
}

func run(lc nodefx.Lifecycle, parts []wire.Part) {
	for _, part := range parts {
		lc.Run(part.Name, part.Run)
	}
}

func connection(lc nodefx.Lifecycle, cfg completed, this *wire.ThisNode) (*cluster.Connection, error) {
	c, err := cluster.Connect(cfg.Config, this)
	if err == nil {
		run(lc, c.Runs())
	}
	return c, err
}

func cache(lc nodefx.Lifecycle, cfg completed, c *cluster.Connection, sink wire.EventWriter, contents *wire.Contents) (*apicache.Cache, error) {
	made, parts, err := cluster.Cache(cfg.Config, c, sink, contents)
	run(lc, parts)
	return made, err
}

func recorder(lc nodefx.Lifecycle, cfg completed, c *cluster.Connection, this *wire.ThisNode) (*events.Recorder, error) {
	made, parts, err := cluster.Events(cfg.Config, c, this)
	run(lc, parts)
	return made, err
}

// writer is the default status writer.
type writer struct{ wire.StatusWriter }

func statuses(lc nodefx.Lifecycle, cfg completed, c *cluster.Connection) (writer, error) {
	made, parts, err := cluster.Statuses(cfg.Config, c)
	run(lc, parts)
	return writer{made}, err
}

func source(cfg completed, c *cluster.Connection, copies wire.StatusWriter) (*apipods.Source, error) {
	return cluster.Pods(cfg.Config, c, copies)
}

// told are the seams that the registration reads and calls.
type told struct {
	fx.In

	Watcher  node.Watcher
	Facts    runtimefx.NodeFacts
	Claims   wire.Claims
	Getter   wire.NodeGetter
	Events   wire.EventWriter
	Statuses wire.StatusWriter
}

func registrar(lc nodefx.Lifecycle, cfg completed, c *cluster.Connection, t told) (*register.Registrar, error) {
	made, parts, err := cluster.Registrar(cfg.Config, c, cluster.RegistrarParts{
		Runtime: t.Watcher.Status, Images: t.Facts.Images, PodCIDR: t.Facts.PodCIDR,
		Claims: t.Claims, Getter: t.Getter, Events: t.Events, Statuses: t.Statuses,
	})
	run(lc, parts)
	return made, err
}

// given is the default of a seam.
type given[I any] struct {
	fx.Out

	Default I `name:"cluster"`
}

func configMaps(c *apicache.Cache) given[plugins.ConfigMaps] {
	return given[plugins.ConfigMaps]{Default: c}
}

func secrets(c *apicache.Cache) given[plugins.Secrets] { return given[plugins.Secrets]{Default: c} }

func services(c *apicache.Cache) given[environment.Services] {
	return given[environment.Services]{Default: c}
}

func tokens(c *cluster.Connection, contents *wire.Contents) given[plugins.Tokens] {
	return given[plugins.Tokens]{Default: cluster.Tokens(c, contents)}
}

func trustBundles(cfg completed, c *apicache.Cache) given[plugins.TrustBundles] {
	return given[plugins.TrustBundles]{Default: cluster.TrustBundles(cfg.Config, c)}
}

func podCertificates(cfg completed, c *apicache.Cache) given[plugins.PodCertificates] {
	return given[plugins.PodCertificates]{Default: cluster.PodCertificates(cfg.Config, c)}
}

func runtimeClasses(c *apicache.Cache) (given[node.RuntimeClasses], error) {
	classes, err := cluster.RuntimeClasses(c)
	return given[node.RuntimeClasses]{Default: classes}, err
}

func csiDrivers(lc nodefx.Lifecycle, cfg completed, c *cluster.Connection, this *wire.ThisNode, contents *wire.Contents) (given[csi.Drivers], error) {
	objects, parts, err := cluster.CSIDrivers(cfg.Config, c, this, contents)
	if err != nil {
		return given[csi.Drivers]{}, err
	}
	run(lc, parts)
	return given[csi.Drivers]{Default: objects}, nil
}

func claimsOf(
	lc nodefx.Lifecycle, cfg completed, c *cluster.Connection, getter wire.NodeGetter,
	this *wire.ThisNode, contents *wire.Contents, sink wire.EventWriter,
) (given[wire.Claims], error) {
	made, err := cluster.Claims(cfg.Config, c, getter, this, contents)
	if err != nil {
		return given[wire.Claims]{}, err
	}
	parts, err := cluster.Expansion(cfg.Config, c, sink, contents)
	if err != nil {
		return given[wire.Claims]{}, err
	}
	run(lc, parts)
	return given[wire.Claims]{Default: made}, nil
}

func nodeGetter(c *apicache.Cache) given[wire.NodeGetter] { return given[wire.NodeGetter]{Default: c} }

func registration(r *register.Registrar) given[wire.Registration] {
	return given[wire.Registration]{Default: r}
}

func podSource(s *apipods.Source) given[wire.PodSource] { return given[wire.PodSource]{Default: s} }

func statusWriter(w writer) given[wire.StatusWriter] {
	return given[wire.StatusWriter]{Default: w.StatusWriter}
}

func eventWriter(r *events.Recorder) given[wire.EventWriter] {
	return given[wire.EventWriter]{Default: r}
}
