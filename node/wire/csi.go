package wire

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/pluginwatch"
	"nodekit.dev/node/csinode"
	"nodekit.dev/node/expand"
	"nodekit.dev/volume"
	"nodekit.dev/volume/csi"
	"nodekit.dev/volume/plugins"
)

// CSI mounts the volumes of CSI drivers, which register where Host.PluginRegistry
// says. What it returns must run. A nil connector is
// csi.Sockets.
func CSI(cfg Config, p ClusterParts, connect csi.Connector, contents *Contents) (*csi.Plugin, []Part, error) {
	own := cfg.CSI
	own.Observer = contents.csiObserver(own.Observer)
	parts := csi.Parts{Drivers: p.CSIDrivers, Connect: connect, Wake: contents.wake}
	if p.Secrets != nil {
		parts.Secrets = p.Secrets
	}
	if p.Tokens != nil {
		parts.Tokens = csiTokens{p.Tokens}
	}
	log := cfg.Log.With("part", "csi")
	plugin, err := csi.New(own, parts, log)
	if err != nil {
		return nil, nil, err
	}
	contents.csi.plugin.Store(plugin)
	contents.KeepGrower(csiGrower{plugin})
	runs := []Part{{"csi", plugin.Run}}
	if !cfg.Host.PluginRegistry {
		return plugin, runs, nil
	}
	watch, err := pluginwatch.New(pluginwatch.Config{Dir: filepath.Join(cfg.RootDir, "plugins_registry")},
		map[string]pluginwatch.Handler{pluginwatch.CSI: csiRegistry{plugin}}, log)
	if err != nil {
		return nil, nil, err
	}
	return plugin, append(runs, Part{"plugin-registry", watch.Run}), nil
}

// csiParts stand between the CSI drivers and who asks about them: each is made
// without the others.
type csiParts struct {
	plugin atomic.Pointer[csi.Plugin] // nil: a vendor's Mounter has its own ways

	mu          sync.Mutex
	onUnstaged  []func()
	onExhausted []func(driver string)
}

// OnUnstaged has call called when a volume is not on the node any more, which may
// be after its pods are gone. It must not block.
func (c *Contents) OnUnstaged(call func()) {
	c.csi.mu.Lock()
	defer c.csi.mu.Unlock()
	c.csi.onUnstaged = append(c.csi.onUnstaged, call)
}

// OnCSIExhausted has call called when a driver has no room for one more volume on
// the node. It must not block.
func (c *Contents) OnCSIExhausted(call func(driver string)) {
	c.csi.mu.Lock()
	defer c.csi.mu.Unlock()
	c.csi.onExhausted = append(c.csi.onExhausted, call)
}

func (c *Contents) csiObserver(o csi.Observer) csi.Observer {
	call, expanded, unstaged := o.Call, o.Expanded, o.Unstaged
	o.Call = func(done csi.Call) {
		if done.Code == codes.ResourceExhausted.String() {
			c.CSIExhausted(done.Driver)
		}
		if call != nil {
			call(done)
		}
	}
	o.Expanded = func(e csi.Expansion) {
		if e.Mounting {
			c.Grown(expand.Growth{Volume: volume.Recorded{UID: e.UID, Source: e.Source}, Size: e.Size, Took: e.Took, Err: classify(e.Err)})
		}
		if expanded != nil {
			expanded(e)
		}
	}
	o.Unstaged = func(driver, handle string) {
		c.csi.mu.Lock()
		calls := slices.Clone(c.csi.onUnstaged)
		c.csi.mu.Unlock()
		for _, call := range calls {
			call()
		}
		if unstaged != nil {
			unstaged(driver, handle)
		}
	}
	return o
}

// CSIExhausted calls them. It never blocks.
func (c *Contents) CSIExhausted(driver string) {
	c.csi.mu.Lock()
	calls := slices.Clone(c.csi.onExhausted)
	c.csi.mu.Unlock()
	for _, call := range calls {
		call(driver)
	}
}

// wake has a pod try again what failed.
func (c *Contents) wake(uid string) {
	if n := c.node.Load(); n != nil {
		n.News(uid)
	}
}

// Held are Recorded, and the volumes that are still staged although no pod uses
// them: all that must not be detached.
func (c *Contents) Held() ([]volume.Recorded, error) {
	all, err := c.Recorded()
	plugin := c.csi.plugin.Load()
	if err != nil || plugin == nil {
		return all, err
	}
	staged, err := plugin.Staged()
	for _, s := range staged {
		pv := &corev1.PersistentVolume{}
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: s.Driver, VolumeHandle: s.Handle}
		all = append(all, volume.Recorded{Source: volume.Source{PersistentVolume: pv, Attached: s.Attached}})
	}
	return all, err
}

// csiRegistry hands drivers that register on.
type csiRegistry struct{ plugin *csi.Plugin }

func csiRegistration(r pluginwatch.Registration) csi.Registration {
	return csi.Registration{Name: r.Name, Endpoint: r.Endpoint, Versions: r.Versions, Socket: r.Socket}
}

// Register implements pluginwatch.Handler.
func (c csiRegistry) Register(ctx context.Context, r pluginwatch.Registration) error {
	return c.plugin.Register(ctx, csiRegistration(r))
}

// Unregister implements pluginwatch.Handler.
func (c csiRegistry) Unregister(r pluginwatch.Registration) { c.plugin.Unregister(csiRegistration(r)) }

// csiTokens are those of projected volumes.
type csiTokens struct{ tokens plugins.Tokens }

// Token implements csi.Tokens.
func (t csiTokens) Token(ctx context.Context, req csi.TokenRequest) (csi.Token, error) {
	got, err := t.tokens.Token(ctx, plugins.TokenRequest(req))
	return csi.Token{Value: got.Value, Expiration: got.Expiration}, err
}

// CSIDrivers are the drivers of the default Mounter, whenever that is made; with
// a vendor's there are none.
func (c *Contents) CSIDrivers() csinode.Drivers { return csiDrivers{c} }

type csiDrivers struct{ contents *Contents }

// Registered lists them.
func (d csiDrivers) Registered() (all []csinode.Driver) {
	if plugin := d.contents.csi.plugin.Load(); plugin != nil {
		for _, one := range plugin.Registered() {
			all = append(all, csinode.Driver{Name: one.Name, NodeID: one.NodeID, MaxVolumes: one.MaxVolumes, Topology: one.Topology})
		}
	}
	return all
}

// Changed never is where there are none.
func (d csiDrivers) Changed() <-chan struct{} {
	if plugin := d.contents.csi.plugin.Load(); plugin != nil {
		return plugin.Changed()
	}
	return nil
}

// Refresh asks one.
func (d csiDrivers) Refresh(ctx context.Context, driver string) error {
	if plugin := d.contents.csi.plugin.Load(); plugin != nil {
		return plugin.Refresh(ctx, driver)
	}
	return nil
}
