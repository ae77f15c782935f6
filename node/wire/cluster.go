package wire

import (
	"path/filepath"
	"sync/atomic"

	"nodekit.dev/credentials/nodecert"
	"nodekit.dev/node/apipods"
	"nodekit.dev/node/apiserver"
	"nodekit.dev/node/events"
	"nodekit.dev/node/objects"
	"nodekit.dev/node/register"
	"nodekit.dev/node/status"
)

// Cluster says how an agent is a member of a cluster: one value per part that
// talks to the API server. DefaultCluster has all but the kubeconfig. The node's
// name, addresses and log are those of the Config that it stands in.
type Cluster struct {
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
	Objects  objects.Config
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

	// registrar hears of the runtime's health once there is one.
	registrar *atomic.Pointer[register.Registrar]
}

// healthChanged has the Node's conditions told now.
func (c *Cluster) healthChanged() {
	if r := c.registrar.Load(); r != nil {
		r.Kick()
	}
}

// DefaultCluster is what the stock kubelet does, without a kubeconfig.
func DefaultCluster() *Cluster {
	return &Cluster{
		Certs:    nodecert.Config{RotateKubeletServerCertificate: true},
		API:      apiserver.Default(),
		Register: register.Default(),
		Events:   events.Default(),
		Status:   status.DefaultConfig(""),
		Pods:     apipods.DefaultConfig(""),
	}
}

// complete returns a copy that has what it shares with the rest of the agent.
func (c *Cluster) complete(cfg Config) *Cluster {
	if c == nil {
		return nil
	}
	out := *c
	out.Certs.NodeName, out.Register.NodeName = cfg.NodeName, cfg.NodeName
	out.Events.NodeName, out.Objects.NodeName = cfg.NodeName, cfg.NodeName
	out.Status.NodeName, out.Pods.NodeName = cfg.NodeName, cfg.NodeName
	if out.Certs.Dir == "" {
		out.Certs.Dir = filepath.Join(cfg.RootDir, "pki")
	}
	if out.registrar == nil {
		out.registrar = &atomic.Pointer[register.Registrar]{}
	}
	out.Events.Log = cfg.Log.With("part", "events")
	return &out
}
