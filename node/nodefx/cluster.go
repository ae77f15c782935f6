package nodefx

import (
	"go.uber.org/fx"

	"nodekit.dev/internal/fxrun"
	"nodekit.dev/node"
	"nodekit.dev/node/environment"
	"nodekit.dev/node/objects"
	"nodekit.dev/node/wire"
	"nodekit.dev/volume/csi"
	"nodekit.dev/volume/plugins"
)

// cluster are the defaults of what an agent has of its cluster. They are nil
// unless another module, node/clusterfx for one, provides them under the name
// "cluster"; of ConfigMaps and Secrets there are none then, but those of the local
// folder, which are for static pods in any case.
func cluster() fx.Option {
	return fx.Provide(
		localObjects, configMaps, secrets, environmentOf, wire.Users,
		given[environment.Services], given[plugins.Tokens], given[plugins.TrustBundles], given[plugins.PodCertificates],
		given[node.RuntimeClasses], given[csi.Drivers], given[wire.Claims], given[wire.NodeGetter], given[wire.Registration],
		given[wire.PodSource], given[wire.StatusWriter], given[wire.EventWriter],
	)
}

// fromCluster is what another module provides; nil: none does.
type fromCluster[I any] struct {
	fx.In

	Given I `name:"cluster" optional:"true"`
}

func given[I any](from fromCluster[I]) I { return from.Given }

func localObjects(lc fx.Lifecycle, r *fxrun.Runner, cfg wire.Config, contents *wire.Contents) (*objects.Folder, error) {
	folder, runs, err := wire.LocalObjects(cfg, contents)
	for _, part := range runs {
		r.Run(lc, part.Name, part.Run)
	}
	return folder, err
}

func configMaps(local *objects.Folder, from fromCluster[plugins.ConfigMaps], contents *wire.Contents) plugins.ConfigMaps {
	return wire.LocalConfigMaps(local, from.Given, contents)
}

func secrets(local *objects.Folder, from fromCluster[plugins.Secrets], contents *wire.Contents) plugins.Secrets {
	return wire.LocalSecrets(local, from.Given, contents)
}

// environmentOf is made of the getters.
func environmentOf(m plugins.ConfigMaps, s plugins.Secrets, services environment.Services, volumes node.Mounter) (node.Environment, error) {
	return wire.Environment(wire.ClusterParts{ConfigMaps: m, Secrets: s, Services: services}, volumes)
}

// clusterParts are the seams, as the graph has them.
type clusterParts struct {
	fx.In

	ConfigMaps      plugins.ConfigMaps
	Secrets         plugins.Secrets
	Services        environment.Services
	Tokens          plugins.Tokens
	TrustBundles    plugins.TrustBundles
	PodCertificates plugins.PodCertificates
	CSIDrivers      csi.Drivers
	Claims          wire.Claims
	NodeGetter      wire.NodeGetter
	Registration    wire.Registration
	PodSource       wire.PodSource
	StatusWriter    wire.StatusWriter
	EventWriter     wire.EventWriter
}

func (p clusterParts) wired() wire.ClusterParts {
	return wire.ClusterParts{
		ConfigMaps: p.ConfigMaps, Secrets: p.Secrets, Services: p.Services,
		Tokens: p.Tokens, TrustBundles: p.TrustBundles, PodCertificates: p.PodCertificates,
		CSIDrivers: p.CSIDrivers, Claims: p.Claims, NodeGetter: p.NodeGetter, Registration: p.Registration,
		PodSource: p.PodSource, StatusWriter: p.StatusWriter, EventWriter: p.EventWriter,
	}
}
