package wire

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/environment"
	"nodekit.dev/volume"
	"nodekit.dev/volume/csi"
	"nodekit.dev/volume/plugins"
)

// ClusterParts are what an agent has of its cluster, or of what stands in for
// one. Package node/cluster makes those that are nil, for an agent that joins
// an API server; an agent does without what is nil in the end.
type ClusterParts struct {
	// ConfigMaps and Secrets are for volumes and for environments; Services for
	// environments.
	ConfigMaps plugins.ConfigMaps
	Secrets    plugins.Secrets
	Services   environment.Services
	// Tokens, TrustBundles and PodCertificates fill projected volumes.
	Tokens          plugins.Tokens
	TrustBundles    plugins.TrustBundles
	PodCertificates plugins.PodCertificates
	// CSIDrivers finds CSIDriver objects. The default also keeps the CSINode
	// object.
	CSIDrivers csi.Drivers
	// Claims finds what PersistentVolumeClaims are bound to.
	Claims Claims
	// NodeGetter reads the Node object, Registration keeps it.
	NodeGetter   NodeGetter
	Registration Registration
	// PodSource names the cluster's pods, StatusWriter and EventWriter tell it
	// what becomes of them.
	PodSource    PodSource
	StatusWriter StatusWriter
	EventWriter  EventWriter
}

// Claims finds what PersistentVolumeClaims are bound to, and says which volumes
// must not be detached from the node. The default is node/claims.
type Claims interface {
	volume.Claims
	// InUse is for node.status.volumesInUse, and asked whenever that is put
	// together; known is false while nobody can tell.
	InUse() (volumes []corev1.UniqueVolumeName, known bool)
}

// NodeGetter reads this node's object. The default asks the API server.
type NodeGetter interface {
	// Node may block until ctx ends and is called concurrently. The object is
	// shared and may leave out the images.
	Node(ctx context.Context) (*corev1.Node, error)
}

// Registration makes this node known and keeps its object. The default is
// node/register, which also takes setters of a vendor's.
type Registration interface {
	// Node is the node as last known: as the cluster has it, else as it will be
	// registered; its UID is empty until it is. It is never nil, shared, and may
	// be asked for at any time; it must not block.
	Node() *corev1.Node
	// Kick says that something about the node changed: its runtime's health, for
	// one. It must not block and may be called at any time.
	Kick()
}

// PodSource is the source of the pods that the cluster has for this node. The
// default is node/apipods, whose name is "api".
type PodSource interface {
	node.Source
}

// PodCopies hears what the API server has of each pod, from the default
// PodSource. No method may block; all are called by one goroutine.
type PodCopies interface {
	// PodSeen brings the newest copy of a pod, which is never changed later.
	// The same copy may come twice.
	PodSeen(pod *corev1.Pod)
	// PodGone brings the last known copy of a pod that does not exist any more.
	PodGone(pod *corev1.Pod)
	// InSync says that the server answers and that all pods it has were told.
	InSync()
}

// StatusWriter tells the cluster about this node's pods. The default is
// node/status. See [StatusesTo] for one that only takes statuses.
type StatusWriter interface {
	node.StatusSink
	PodCopies
	// Attach gives it the node, once, before either runs.
	Attach(n *node.Node)
	// Kick says that what failed may work now: the Node object was written, for
	// one. It must not block.
	Kick()
}

// StatusesTo is a StatusWriter that passes statuses on to a sink and needs no
// more.
func StatusesTo(sink node.StatusSink) StatusWriter { return statusesTo{sink} }

type statusesTo struct{ node.StatusSink }

func (statusesTo) PodSeen(*corev1.Pod) {}
func (statusesTo) PodGone(*corev1.Pod) {}
func (statusesTo) InSync()             {}
func (statusesTo) Attach(*node.Node)   {}
func (statusesTo) Kick()               {}

// EventWriter tells the cluster's users what happens. The default is
// node/events.
type EventWriter interface {
	node.EventSink
	// NodeEvent takes an event about the node; eventType is "Normal" or
	// "Warning". It must not block and may be called concurrently.
	NodeEvent(eventType, reason, message string)
}
