package cluster

import (
	"log/slog"
	"path/filepath"

	"nodekit.dev/credentials/nodecert"
	"nodekit.dev/node"
	"nodekit.dev/node/apipods"
	"nodekit.dev/node/apiserver"
	"nodekit.dev/node/events"
	"nodekit.dev/node/expand"
	"nodekit.dev/node/objects/apicache"
	"nodekit.dev/node/register"
	"nodekit.dev/node/status"
	"nodekit.dev/node/wire"
)

// Config says how an agent is a member of a cluster: one value per part that
// talks to the API server. Default has all but the kubeconfig. The node's name,
// the root directory and the log are those of the wire.Config it is completed
// with.
type Config struct {
	// Certs names the kubeconfig, and how the node gets its certificates. Its
	// Dir is "pki" in the root directory unless it is set.
	Certs nodecert.Config
	// API limits the requests; its REST and Credentials come from Certs where
	// they are not set.
	API      apiserver.Config
	Register register.Config
	Events   events.Config
	Status   status.Config
	Pods     apipods.Config
	Objects  apicache.Config
	// Expand says how the volumes of running pods grow.
	Expand expand.Config
	// NoTrustBundles leaves ClusterTrustBundles out of projected volumes (gate
	// ClusterTrustBundleProjection is off).
	NoTrustBundles bool
	// NoPodCertificates leaves pod certificates out of them (gate
	// PodCertificateRequest is off).
	NoPodCertificates bool

	// RegisterObserver and StatusObserver are told how the node joins and what
	// is told about its pods, for metrics.
	RegisterObserver register.Observer
	StatusObserver   status.Observer

	// Setters fill in the Node object, among the stock ones or in the place of
	// one; Resources are further sources of capacity. See register.Parts.
	Setters   []node.Ordered[register.Setter]
	Resources []node.Ordered[register.Contributor]

	rootDir string
	log     *slog.Logger
}

// Default is what the stock kubelet does, without a kubeconfig.
func Default() Config {
	return Config{
		Certs:    nodecert.Config{RotateKubeletServerCertificate: true},
		API:      apiserver.Default(),
		Register: register.Default(),
		Events:   events.Default(),
		Status:   status.DefaultConfig(""),
		Pods:     apipods.DefaultConfig(""),
		Expand:   expand.Default(),
	}
}

// Complete fills in what it shares with the rest of the agent. Completing twice
// is fine.
func (c Config) Complete(cfg wire.Config) Config {
	c.Certs.NodeName, c.Register.NodeName = cfg.NodeName, cfg.NodeName
	c.Events.NodeName, c.Objects.NodeName = cfg.NodeName, cfg.NodeName
	c.Status.NodeName, c.Pods.NodeName, c.Expand.NodeName = cfg.NodeName, cfg.NodeName, cfg.NodeName
	if c.Certs.Dir == "" {
		c.Certs.Dir = filepath.Join(cfg.RootDir, "pki")
	}
	c.Events.Log = cfg.Log.With("part", "events")
	c.rootDir, c.log = cfg.RootDir, cfg.Log
	return c
}
