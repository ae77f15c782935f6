package register

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"nodekit.dev/node"
	"nodekit.dev/resources"
	"nodekit.dev/runtime"
)

// Warning is what is wrong with a node from its start on, such as "CgroupV1".
type Warning struct{ Reason, Message string }

// Config says what the node is and how often it is told. Default has all but
// NodeName.
type Config struct {
	// NodeName is the name of the Node object. Required.
	NodeName string
	// Hostname is the kubernetes.io/hostname label and the Hostname address;
	// empty: NodeName.
	Hostname string
	// Register creates the Node object (registerNode). False: someone else does,
	// and its status is filled in once it is there.
	Register bool
	// Labels, Taints and ProviderID are for a Node that is new; an existing one
	// keeps what it has, but for the labels that every node has.
	Labels     map[string]string
	Taints     []corev1.Taint
	ProviderID string
	// AllowLabel lets a vendor's labels through that CheckLabels would refuse;
	// nil: none. The API server's NodeRestriction has its own say.
	AllowLabel func(key string) bool
	// NoGetWhenForbidden gives up on a Node that may not be created, instead of
	// looking whether it exists (gate KubeletRegistrationGetOnExistsOnly).
	NoGetWhenForbidden bool
	// NodeIPs is --node-ip, see ParseNodeIPs. Empty: found out.
	NodeIPs []net.IP
	// ExternalCloud is --cloud-provider=external: the node starts tainted, and
	// its addresses are the cloud controller's to fill in.
	ExternalCloud bool
	// AttachByController leaves attaching volumes to the controller
	// (enableControllerAttachDetach).
	AttachByController bool

	Pods     resources.PodLimit
	Reserved resources.Reserved
	// LocalStorage reports ephemeral storage and misses it when it is not there
	// (localStorageCapacityIsolation).
	LocalStorage bool
	// MaxImages bounds the images that are told (nodeStatusMaxImages); -1: all.
	MaxImages int
	// Port is where the agent's HTTPS API listens.
	Port int32
	// KubeletVersion is told as the node's version, such as "v1.37.2".
	// KubeProxyVersion is empty unless the gate DisableNodeKubeProxyVersion is off.
	KubeletVersion   string
	KubeProxyVersion string
	// DeclaredFeatures are told as they are, sorted (gate NodeDeclaredFeatures),
	// see DeclaredFeatures. Empty: none are told.
	DeclaredFeatures []string
	// StartWarnings are told as events of the node each time the agent starts.
	StartWarnings []Warning
	// TellUserNamespace tells whether the agent runs in a user namespace of its
	// own (gate KubeletInUserNamespace).
	TellUserNamespace bool

	// UpdateEvery is how often the status is put together, and told if it
	// changed (nodeStatusUpdateFrequency); ReportEvery how often it is told
	// even if it did not (nodeStatusReportFrequency).
	UpdateEvery time.Duration
	ReportEvery time.Duration
	// LeaseDuration is how long the node is taken for alive without a sign; a
	// quarter of it passes between two signs. Whole seconds.
	LeaseDuration time.Duration
	// RuntimeGrace is how long the runtime may be silent before the node is not
	// ready.
	RuntimeGrace time.Duration
	// FirstLook is how long the first status waits for the first word of the
	// runtime, so that a restart of the agent does not make the node not ready.
	FirstLook time.Duration
}

// Default is what the stock kubelet does without configuration.
func Default() Config {
	return Config{
		Register: true, AttachByController: true, LocalStorage: true, TellUserNamespace: true,
		Pods: resources.PodLimit{Max: 110}, MaxImages: 50, Port: 10250,
		UpdateEvery: 10 * time.Second, ReportEvery: 5 * time.Minute, LeaseDuration: 40 * time.Second,
		RuntimeGrace: 30 * time.Second, FirstLook: 5 * time.Second,
	}
}

// Validate names every field that is wrong.
func (c Config) Validate() error {
	var errs []error
	if c.NodeName == "" {
		errs = append(errs, errors.New("NodeName: must not be empty"))
	}
	if len(c.NodeIPs) > 2 {
		errs = append(errs, fmt.Errorf("NodeIPs: %v: at most one of each family", c.NodeIPs))
	}
	for _, d := range []struct {
		field string
		value time.Duration
		least time.Duration
	}{
		{"UpdateEvery", c.UpdateEvery, time.Millisecond}, {"ReportEvery", c.ReportEvery, time.Millisecond},
		{"LeaseDuration", c.LeaseDuration, time.Second}, {"RuntimeGrace", c.RuntimeGrace, time.Millisecond}, {"FirstLook", c.FirstLook, 0},
	} {
		if d.value < d.least {
			errs = append(errs, fmt.Errorf("%s: %v must be at least %v", d.field, d.value, d.least))
		}
	}
	if err := CheckLabels(c.Labels, c.AllowLabel); err != nil {
		errs = append(errs, fmt.Errorf("node labels: %w", err))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.Hostname == "" {
		c.Hostname = c.NodeName
	}
	c.Labels = maps.Clone(c.Labels)
	return c
}

// Parts is what the registrar reads and calls. Core and Machine are required.
type Parts struct {
	// Core and Coordination are the API groups v1 and coordination.k8s.io/v1.
	// Without Coordination no lease is kept.
	Core         rest.Interface
	Coordination rest.Interface
	// Machine tells what the node is made of. It may be asked every UpdateEvery.
	Machine func() (resources.Machine, error)
	// Runtime is the runtime's health as last read; it must not block. Nil: the
	// node is ready without one.
	Runtime func() runtime.Status
	// Images lists the images on the node, at most every 30 s; nil: none are told.
	Images func(ctx context.Context) ([]runtime.ImageInfo, error)
	// Pressure tells what the node is short of; nil: of nothing.
	Pressure func() Pressure
	// Checks are asked for what else keeps the node from being ready.
	Checks []Check
	// VolumesInUse tells the volumes that must not be detached; known is false
	// until all of them were found. Nil: the field is left alone.
	VolumesInUse func() (volumes []corev1.UniqueVolumeName, known bool)
	// Resources are further sources of capacity, such as devices.
	Resources []node.Ordered[Contributor]
	// Setters come among the stock ones, which have the names that SetterNames
	// lists. One with the name of a stock setter takes its place.
	Setters []node.Ordered[Setter]

	// Network finds addresses; nil: the host's.
	Network Network
	// Seen is the Node as last seen by a watch, which saves reading it over and
	// over; it may leave out the images. Nil, or an error of it: the Node is read
	// from the API server.
	Seen func(ctx context.Context) (*corev1.Node, error)
	// PodCIDR is told the node's pod CIDRs with a comma between, when they are
	// known and when they change, again until it works.
	PodCIDR func(ctx context.Context, cidrs string) error
	// Event takes events about the node; it must not block.
	Event func(eventType, reason, message string)
	// HeartbeatFailed is called for the second and each further failure of one
	// heartbeat, of the lease or of the status, so that dead connections go.
	HeartbeatFailed func()
	// Observer's functions may be nil.
	Observer Observer
	// Log is nil for no logs.
	Log *slog.Logger
}

// Pressure is what the node is short of.
type Pressure struct{ Memory, Disk, PID bool }

// Check keeps the node from being ready while Problem returns an error. With a
// name it is told as "NAME is not healthy: ERROR", without one as it is.
type Check struct {
	Name    string
	Problem func() error
}

// Observer is told what happens, for metrics. Its functions must not block.
type Observer struct {
	// Registering is called at the first try to register, Registered once the
	// Node object is there, with whether it was created by this agent.
	Registering func()
	Registered  func(created bool)
	// Status is called after each try to tell the status, Lease after each try
	// to renew the lease.
	Status func(took time.Duration, err error)
	Lease  func(took time.Duration, err error)
	// Ready is called when the API server first took the word that the node is ready.
	Ready func()
}

func (o Observer) filled() Observer {
	if o.Registering == nil {
		o.Registering = func() {}
	}
	if o.Registered == nil {
		o.Registered = func(bool) {}
	}
	if o.Status == nil {
		o.Status = func(time.Duration, error) {}
	}
	if o.Lease == nil {
		o.Lease = func(time.Duration, error) {}
	}
	if o.Ready == nil {
		o.Ready = func() {}
	}
	return o
}

func (p Parts) withDefaults() (Parts, error) {
	switch {
	case p.Core == nil:
		return p, errors.New("parts: Core is missing: it is the REST client of the API group v1")
	case p.Machine == nil:
		return p, errors.New("parts: Machine is missing: package resources/machine reads it")
	}
	if p.Network == nil {
		p.Network = HostNetwork{}
	}
	if p.Event == nil {
		p.Event = func(string, string, string) {}
	}
	if p.HeartbeatFailed == nil {
		p.HeartbeatFailed = func() {}
	}
	if p.Log == nil {
		p.Log = slog.New(slog.DiscardHandler)
	}
	p.Observer = p.Observer.filled()
	return p, nil
}
