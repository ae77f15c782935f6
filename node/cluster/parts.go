package cluster

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/credentials/token"
	"nodekit.dev/node"
	"nodekit.dev/node/apipods"
	"nodekit.dev/node/apiserver"
	"nodekit.dev/node/claims"
	"nodekit.dev/node/csinode"
	"nodekit.dev/node/environment"
	"nodekit.dev/node/events"
	"nodekit.dev/node/expand"
	"nodekit.dev/node/objects/apicache"
	"nodekit.dev/node/register"
	"nodekit.dev/node/status"
	"nodekit.dev/node/wire"
	"nodekit.dev/resources"
	"nodekit.dev/resources/machine"
	"nodekit.dev/runtime"
	"nodekit.dev/volume/plugins"
)

// The functions below make one part each, and name what must run for it. The
// configuration is complete.

// Cache reads what pods refer to. Changes go to contents, and what is wrong with
// the certificates of a pod to events; nil: to nobody.
func Cache(cfg Config, c *Connection, sink node.EventSink, contents *wire.Contents) (*apicache.Cache, []wire.Part, error) {
	reads, own := c.API.Lane(apiserver.LaneRead), cfg.Objects
	if own.Event == nil && sink != nil {
		own.Event = func(pod *corev1.Pod, reason, message string) { wire.Warn(sink, pod, reason, message) }
	}
	if own.NodeChanged == nil {
		own.NodeChanged = contents.NodeChanged
	}
	cache, err := apicache.New(own, apicache.Clients{
		Core: reads.Core(), Node: reads.NodeV1(), Certificates: reads.Certificates(),
	}, c.log)
	if err != nil {
		return nil, nil, err
	}
	contents.OnRelease(cache.Release)
	return cache, []wire.Part{
		c.run("objects", cache.Run),
		{Name: "object-changes", Run: func(ctx context.Context) error { return contents.Follow(ctx, cache.Changes()) }},
	}, nil
}

// TrustBundles are the cache's, unless the configuration is without.
func TrustBundles(cfg Config, cache *apicache.Cache) plugins.TrustBundles {
	if cfg.NoTrustBundles {
		return nil
	}
	return trustBundles{cache}
}

type trustBundles struct{ cache *apicache.Cache }

// ClusterTrustBundle finds one.
func (b trustBundles) ClusterTrustBundle(ctx context.Context, uid types.UID, name string) (string, error) {
	found, err := b.cache.ClusterTrustBundle(ctx, uid, name)
	if err != nil {
		return "", err
	}
	return found.Spec.TrustBundle, nil
}

// ClusterTrustBundles finds those of a signer.
func (b trustBundles) ClusterTrustBundles(ctx context.Context, uid types.UID, signer string, selector *metav1.LabelSelector) ([]string, error) {
	found, err := b.cache.ClusterTrustBundles(ctx, uid, signer, selector)
	var bundles []string
	for _, bundle := range found {
		bundles = append(bundles, bundle.Spec.TrustBundle)
	}
	return bundles, err
}

// PodCertificates are the cache's, unless the configuration is without.
func PodCertificates(cfg Config, cache *apicache.Cache) plugins.PodCertificates {
	if cfg.NoPodCertificates {
		return nil
	}
	return cache
}

// Claims are read from the API server; getter is the Node object as last seen.
func Claims(cfg Config, c *Connection, getter wire.NodeGetter, this *wire.ThisNode, contents *wire.Contents) (*claims.Claims, error) {
	reads := c.API.Lane(apiserver.LaneRead)
	made, err := claims.New(claims.Config{NodeName: cfg.Register.NodeName}, claims.Parts{
		Core: reads.Core(), Storage: reads.Storage(), Node: getter.Node,
		Recorded: contents.Held, Exhausted: contents.CSIExhausted, Kick: this.Kick, Log: c.log,
	})
	if err != nil {
		return nil, err
	}
	contents.OnRelease(made.Release)
	contents.OnNodeChange(made.NodeChanged)
	contents.OnUnstaged(this.Kick)
	return made, nil
}

// CSIDrivers reads CSIDriver objects; what it returns beside that tells the
// cluster of the drivers that register with the agent.
func CSIDrivers(cfg Config, c *Connection, this *wire.ThisNode, contents *wire.Contents) (*csinode.Objects, []wire.Part, error) {
	storage := c.API.Lane(apiserver.LaneRead).Storage()
	objects := csinode.NewObjects(storage)
	keeper, err := csinode.New(csinode.Config{NodeName: cfg.Register.NodeName}, csinode.Parts{
		Core: c.API.Lane(apiserver.LaneRead).Core(), Storage: storage, Node: this.Node,
		Drivers: contents.CSIDrivers(), Objects: objects, Log: c.log,
	})
	if err != nil {
		return nil, nil, err
	}
	contents.OnCSIExhausted(keeper.Exhausted)
	return objects, []wire.Part{c.run("csi-node", keeper.Run)}, nil
}

// Expansion grows the volumes of running pods, and tells their claims. Events
// go to sink; nil: to nobody.
func Expansion(cfg Config, c *Connection, sink node.EventSink, contents *wire.Contents) ([]wire.Part, error) {
	made, err := expand.New(cfg.Expand, expand.Parts{
		Core: c.API.Lane(apiserver.LaneRead).Core(), Volumes: contents.Recorded, Grower: contents.Grower(),
		Event: func(e expand.Event) { tellExpansion(sink, contents, e) }, Log: c.log,
	})
	if err != nil {
		return nil, err
	}
	contents.OnMountsChange(made.Changed)
	contents.OnGrown(made.Grown)
	return []wire.Part{c.run("volume-expansion", made.Run)}, nil
}

// aboutAny is an event writer that takes events about any object.
type aboutAny interface {
	Event(about corev1.ObjectReference, eventType, reason, message string)
}

func tellExpansion(sink node.EventSink, contents *wire.Contents, e expand.Event) {
	recorder, ok := sink.(aboutAny)
	switch {
	case sink == nil:
	case e.Claim == nil:
		contents.PodEvent(sink, e.PodUID, e.Type, e.Reason, e.Message)
	case ok:
		recorder.Event(*e.Claim, e.Type, e.Reason, e.Message)
	}
}

// RuntimeClasses are the cache's.
func RuntimeClasses(cache *apicache.Cache) (node.RuntimeClasses, error) {
	return environment.NewRuntimeClasses(classes{cache})
}

type classes struct{ cache *apicache.Cache }

// RuntimeClass finds the handler.
func (c classes) RuntimeClass(ctx context.Context, class string) (string, error) {
	found, err := c.cache.RuntimeClass(ctx, class)
	if err != nil {
		return "", err
	}
	return found.Handler, nil
}

// Tokens are issued by the API server.
func Tokens(c *Connection, contents *wire.Contents) plugins.Tokens {
	manager := token.New(c.API.Lane(apiserver.LaneRead).Core(), c.log)
	contents.OnRelease(manager.Forget)
	return tokens{manager}
}

type tokens struct{ *token.Manager }

// Token asks for one.
func (t tokens) Token(ctx context.Context, req plugins.TokenRequest) (plugins.Token, error) {
	got, err := t.Manager.Token(ctx, token.Request{
		PodUID: req.PodUID, PodName: req.PodName, Namespace: req.Namespace,
		ServiceAccount: req.ServiceAccount, Audience: req.Audience, Expiration: req.Expiration,
	})
	return plugins.Token{Value: got.Value, Expiration: got.Expiration, RefreshAt: got.RefreshAt}, err
}

// Events writes events to the API server.
func Events(cfg Config, c *Connection, this *wire.ThisNode) (*events.Recorder, []wire.Part, error) {
	own := cfg.Events
	if own.NodeUID == nil {
		own.NodeUID = func() types.UID {
			if n := this.Node(); n != nil {
				return n.UID
			}
			return ""
		}
	}
	recorder, err := events.New(own, c.API.Lane(apiserver.LaneEvents).Core())
	if err != nil {
		return nil, nil, err
	}
	return recorder, []wire.Part{c.run("events", recorder.Run)}, nil
}

// Statuses writes the statuses of pods to the API server.
func Statuses(cfg Config, c *Connection) (wire.StatusWriter, []wire.Part, error) {
	writer, err := status.New(cfg.Status, status.Parts{
		API: c.API.Lane(apiserver.LanePodStatus).Core(), Observer: cfg.StatusObserver, Log: c.log,
	})
	if err != nil {
		return nil, nil, err
	}
	return statuses{writer}, []wire.Part{c.run("pod-status", writer.Run)}, nil
}

type statuses struct{ *status.Writer }

// Attach gives the writer its node.
func (s statuses) Attach(n *node.Node) { s.Writer.Attach(n) }

// Pods are those that the API server has bound to this node; copies hears of
// each, nil: nobody does.
func Pods(cfg Config, c *Connection, copies wire.PodCopies) (*apipods.Source, error) {
	var hears apipods.Copies
	if copies != nil {
		hears = copies
	}
	return apipods.New(cfg.Pods, c.API.Lane(apiserver.LaneRead).Core(), hears, c.log)
}

// RegistrarParts are what the registration reads and tells. Claims, Getter,
// Events and Statuses may be nil, and so may the functions.
type RegistrarParts struct {
	// Runtime is the runtime's health as last read.
	Runtime func() runtime.Status
	// Images and PodCIDR as in wire.Joining.
	Images  func(context.Context) ([]runtime.ImageInfo, error)
	PodCIDR func(ctx context.Context, cidrs string) error

	Claims   wire.Claims
	Getter   wire.NodeGetter
	Events   wire.EventWriter
	Statuses wire.StatusWriter
}

// Registrar keeps the Node object.
func Registrar(cfg Config, c *Connection, p RegistrarParts) (*register.Registrar, []wire.Part, error) {
	host := machine.Host(cfg.rootDir)
	parts := register.Parts{
		Core:         c.API.Lane(apiserver.LaneNodeStatus).Core(),
		Coordination: c.API.Lane(apiserver.LaneLease).Coordination(),
		Machine:      func() (resources.Machine, error) { return machine.Read(host) },
		Runtime:      p.Runtime, Images: p.Images, PodCIDR: p.PodCIDR,
		Setters: cfg.Setters, Resources: cfg.Resources,
		HeartbeatFailed: c.API.HeartbeatFailed, Observer: observer(cfg.RegisterObserver, c, p.Statuses), Log: c.log,
	}
	if p.Claims != nil {
		parts.VolumesInUse = p.Claims.InUse
	}
	if p.Getter != nil {
		parts.Seen = p.Getter.Node
	}
	if p.Events != nil {
		parts.Event = p.Events.NodeEvent
	}
	registrar, err := register.New(cfg.Register, parts)
	if err != nil {
		return nil, nil, err
	}
	return registrar, []wire.Part{c.run("node-registration", registrar.Run)}, nil
}

// observer also tells those who wait for the Node object.
func observer(o register.Observer, c *Connection, statuses wire.StatusWriter) register.Observer {
	told := o.Status
	o.Status = func(took time.Duration, err error) {
		c.Certs.AddressesChanged()
		if err == nil && statuses != nil {
			statuses.Kick() // mirror pods wait for the Node
		}
		if told != nil {
			told(took, err)
		}
	}
	return o
}
