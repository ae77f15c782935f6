package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/credentials/nodecert"
	"nodekit.dev/credentials/token"
	"nodekit.dev/node"
	"nodekit.dev/node/apipods"
	"nodekit.dev/node/apiserver"
	"nodekit.dev/node/environment"
	"nodekit.dev/node/events"
	"nodekit.dev/node/objects"
	"nodekit.dev/node/register"
	"nodekit.dev/node/status"
	"nodekit.dev/resources"
	"nodekit.dev/resources/machine"
	"nodekit.dev/runtime"
	"nodekit.dev/volume/plugins"
)

// Member is all of an agent that talks to the API server. A nil Member is that
// of an agent that stands alone: its methods do nothing.
type Member struct {
	Certs    *nodecert.Manager
	API      *apiserver.Client
	Objects  *objects.Cache
	Tokens   *token.Manager
	Events   *events.Recorder
	Register *register.Registrar
	Status   *status.Writer
	Pods     *apipods.Source

	log                           *slog.Logger
	trustBundles, podCertificates bool
	node                          atomic.Pointer[node.Node]
}

// MemberParts are what a Member reads of the rest of the agent. All but Runtime
// may be nil.
type MemberParts struct {
	// Runtime is the runtime's health as last read.
	Runtime func() runtime.Status
	// Images lists the images on the node.
	Images func(ctx context.Context) ([]runtime.ImageInfo, error)
	// PodCIDR is told the node's pod CIDRs.
	PodCIDR func(ctx context.Context, cidrs string) error
	// Setters are the vendor's, see register.Parts.
	Setters []node.Ordered[register.Setter]
	// Resources are further sources of capacity, see register.Parts.
	Resources []node.Ordered[register.Contributor]
}

// NewMember makes the parts for Config.Cluster; nil without one. It reads the
// kubeconfig, and calls nobody.
func NewMember(cfg Config, parts MemberParts) (*Member, error) {
	c := cfg.Cluster
	if c == nil {
		return nil, nil
	}
	m := &Member{log: cfg.Log.With("part", "cluster"), trustBundles: !c.NoTrustBundles, podCertificates: !c.NoPodCertificates}
	if err := m.connect(cfg, c); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	if err := m.caches(c); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	if err := m.writers(c); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	if err := m.registration(cfg, c, parts); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	return m, nil
}

// connect makes the certificates and the connection that they are for.
func (m *Member) connect(cfg Config, c *Cluster) (err error) {
	addresses := func() []corev1.NodeAddress { return m.Register.Node().Status.Addresses }
	if m.Certs, err = nodecert.New(c.Certs, addresses, cfg.Log.With("part", "certificates")); err != nil {
		return err
	}
	api := c.API
	if api.REST == nil {
		endpoint, err := m.Certs.Endpoint()
		if err != nil {
			return err
		}
		if endpoint.REST == nil {
			return errors.New("neither a kubeconfig nor a REST configuration says where the API server is")
		}
		api.REST = endpoint.REST
		if endpoint.Managed {
			api.Credentials = m.Certs
		}
	}
	told := api.Observer.Request
	api.Observer.Request = func(r apiserver.Request) {
		m.Certs.Answered(r.Code)
		if told != nil {
			told(r)
		}
	}
	if m.API, err = apiserver.New(api, cfg.Log.With("part", "apiserver")); err != nil {
		return err
	}
	m.Certs.OnRotate(m.API.CloseAll)
	return nil
}

// caches make what is read.
func (m *Member) caches(c *Cluster) (err error) {
	reads := m.API.Lane(apiserver.LaneRead)
	if c.Objects.Event == nil {
		c.Objects.Event = func(pod *corev1.Pod, reason, message string) { m.warn(pod, reason, message) }
	}
	m.Objects, err = objects.New(c.Objects, objects.Clients{
		Core: reads.Core(), Node: reads.NodeV1(), Certificates: reads.Certificates(),
	}, m.log)
	if err != nil {
		return err
	}
	m.Tokens = token.New(reads.Core(), m.log)
	return nil
}

// warn is a warning event about a pod.
func (m *Member) warn(pod *corev1.Pod, reason, message string) {
	m.Events.Event(corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
	}, corev1.EventTypeWarning, reason, message)
}

// RefreshFailed tells that the content of a pod's volumes could not be brought up
// to date; nil where the agent stands alone.
func (m *Member) RefreshFailed() func(*corev1.Pod, error) {
	if m == nil {
		return nil
	}
	return func(pod *corev1.Pod, err error) { m.warn(pod, "FailedMount", err.Error()) }
}

// writers make what is told about pods, and the source that it is compared with.
func (m *Member) writers(c *Cluster) (err error) {
	pods := m.API.Lane(apiserver.LanePodStatus).Core()
	if m.Status, err = status.New(c.Status, status.Parts{API: pods, Observer: c.StatusObserver, Log: m.log}); err != nil {
		return err
	}
	if m.Pods, err = apipods.New(c.Pods, m.API.Lane(apiserver.LaneRead).Core(), m.Status, m.log); err != nil {
		return err
	}
	if c.Events.NodeUID == nil {
		c.Events.NodeUID = func() types.UID { return m.Register.UID() }
	}
	m.Events, err = events.New(c.Events, m.API.Lane(apiserver.LaneEvents).Core())
	return err
}

func (m *Member) registration(cfg Config, c *Cluster, parts MemberParts) (err error) {
	host := machine.Host(cfg.RootDir)
	observer := c.RegisterObserver
	observer.Status = func(took time.Duration, err error) {
		m.Certs.AddressesChanged()
		if err == nil {
			m.Status.Kick() // mirror pods wait for the Node
		}
		if told := c.RegisterObserver.Status; told != nil {
			told(took, err)
		}
	}
	m.Register, err = register.New(c.Register, register.Parts{
		Core:         m.API.Lane(apiserver.LaneNodeStatus).Core(),
		Coordination: m.API.Lane(apiserver.LaneLease).Coordination(),
		Machine:      func() (resources.Machine, error) { return machine.Read(host) },
		Runtime:      parts.Runtime, Images: parts.Images, PodCIDR: parts.PodCIDR,
		Setters: parts.Setters, Resources: parts.Resources,
		Seen: m.Objects.Node, Event: m.Events.NodeEvent, HeartbeatFailed: m.API.HeartbeatFailed,
		Observer: observer, Log: m.log,
	})
	if err == nil {
		c.registrar.Store(m.Register)
	}
	return err
}

// Join adds what the member brings to the parts of a node: the source of the
// cluster's pods, where statuses and events go, what environments name, and the
// end of all that a pod refers to.
func (m *Member) Join(p *node.Parts) error {
	if m == nil {
		return nil
	}
	p.Sources = append(p.Sources, node.Ordered[node.Source]{Name: m.Pods.Name(), Value: m.Pods})
	p.StatusSinks = append(p.StatusSinks, m.Status)
	p.EventSinks = append(p.EventSinks, m.Events)
	p.Hooks = append(p.Hooks, node.Ordered[node.Hook]{Name: "cluster-objects", Value: forgetting{m: m}})
	if p.Environment == nil {
		env, err := environment.New(m.Objects, p.Mounter)
		if err != nil {
			return err
		}
		p.Environment = env
	}
	if p.RuntimeClasses == nil {
		classes, err := environment.NewRuntimeClasses(m.Objects)
		if err != nil {
			return err
		}
		p.RuntimeClasses = classes
	}
	return nil
}

// forgetting drops what the agent kept for a pod once nothing of it is left.
type forgetting struct {
	node.NoHook
	m *Member
}

// Cleanup forgets.
func (f forgetting) Cleanup(_ context.Context, pod *corev1.Pod) error {
	f.m.Objects.Release(pod.UID)
	f.m.Tokens.Forget(pod.UID)
	return nil
}

// Sources are where volumes get their content from.
func (m *Member) Sources() plugins.Sources {
	if m == nil {
		return plugins.Sources{}
	}
	out := plugins.Sources{
		ConfigMaps: m.Objects, Secrets: m.Objects, Tokens: tokens{m.Tokens},
		Allocatable: func() corev1.ResourceList { return m.Register.Node().Status.Allocatable },
	}
	out.TmpfsSize = func(pod *corev1.Pod) int64 {
		limit := resources.PodLimitTotals(pod)[corev1.ResourceMemory]
		return limit.Value()
	}
	if m.trustBundles {
		out.TrustBundles = m.Objects
	}
	if m.podCertificates {
		out.PodCertificates = m.Objects
	}
	return out
}

// tokens are issued by the API server.
type tokens struct{ *token.Manager }

// Token asks for one.
func (t tokens) Token(ctx context.Context, req plugins.TokenRequest) (plugins.Token, error) {
	got, err := t.Manager.Token(ctx, token.Request{
		PodUID: req.PodUID, PodName: req.PodName, Namespace: req.Namespace,
		ServiceAccount: req.ServiceAccount, Audience: req.Audience, Expiration: req.Expiration,
	})
	return plugins.Token{Value: got.Value, RefreshAt: got.RefreshAt}, err
}

// HostIPs are the addresses that the Node object has; none before it has any.
func (m *Member) HostIPs() []string {
	if m == nil {
		return nil
	}
	return m.Register.HostIPs()
}

// Attach gives the member the node that it is part of, before either runs.
func (m *Member) Attach(n *node.Node) {
	if m == nil {
		return
	}
	m.node.Store(n)
	m.Status.Attach(n)
}

// Part is something that runs as long as the agent does.
type Part struct {
	Name string
	Run  func(context.Context) error
}

// Runs lists what runs.
func (m *Member) Runs(contents *Contents) []Part {
	if m == nil {
		return nil
	}
	quiet := func(run func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error { return run(apiserver.Context(ctx, m.log)) }
	}
	return []Part{
		{"node-certificates", quiet(m.Certs.Run)},
		{"api-connection", quiet(m.API.Run)},
		{"objects", quiet(m.Objects.Run)},
		{"events", quiet(m.Events.Run)},
		{"pod-status", quiet(m.Status.Run)},
		{"node-registration", quiet(m.Register.Run)},
		{"object-changes", func(ctx context.Context) error { return m.passOnChanges(ctx, contents) }},
	}
}

// passOnChanges tells volumes and pods of the objects that changed.
func (m *Member) passOnChanges(ctx context.Context, contents *Contents) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case change := <-m.Objects.Changes():
			uid := string(change.UID)
			contents.Changed(uid)
			if n := m.node.Load(); n != nil {
				n.News(uid)
			}
		}
	}
}
