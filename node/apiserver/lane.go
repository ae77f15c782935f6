package apiserver

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// LaneID is a kind of traffic. When requests must wait for the limit on their
// number, the lower lane goes first.
type LaneID int

// The lanes, most urgent first. LaneEvents has a limit of its own.
const (
	LaneLease LaneID = iota
	LaneNodeStatus
	LanePodStatus
	LaneRead // gets, lists, watches, tokens, reviews
	LaneEvents
	laneCount
)

func (l LaneID) String() string {
	switch l {
	case LaneLease:
		return "lease"
	case LaneNodeStatus:
		return "node-status"
	case LanePodStatus:
		return "pod-status"
	case LaneRead:
		return "read"
	case LaneEvents:
		return "events"
	case laneCount:
	}
	return "unknown"
}

// heartbeat says that the lane has the connections that HeartbeatFailed closes.
func (l LaneID) heartbeat() bool { return l == LaneLease || l == LaneNodeStatus }

// Lane makes requests of one priority. Its methods are cheap, may be called
// concurrently, and return the same client each time.
type Lane struct {
	groups map[schema.GroupVersion]rest.Interface
}

// Core is the group "" at v1: pods, nodes, Secrets, events, tokens of
// service accounts.
func (l Lane) Core() rest.Interface { return l.groups[corev1.SchemeGroupVersion] }

// Coordination is coordination.k8s.io/v1: leases.
func (l Lane) Coordination() rest.Interface { return l.groups[coordinationv1.SchemeGroupVersion] }

// NodeV1 is node.k8s.io/v1: RuntimeClasses.
func (l Lane) NodeV1() rest.Interface { return l.groups[nodev1.SchemeGroupVersion] }

// Authentication is authentication.k8s.io/v1: TokenReviews.
func (l Lane) Authentication() rest.Interface { return l.groups[authenticationv1.SchemeGroupVersion] }

// Authorization is authorization.k8s.io/v1: SubjectAccessReviews.
func (l Lane) Authorization() rest.Interface { return l.groups[authorizationv1.SchemeGroupVersion] }

// Certificates is certificates.k8s.io/v1: signing requests, pod certificates.
func (l Lane) Certificates() rest.Interface { return l.groups[certificatesv1.SchemeGroupVersion] }

// Storage is storage.k8s.io/v1: CSINodes, CSIDrivers, VolumeAttachments.
func (l Lane) Storage() rest.Interface { return l.groups[storagev1.SchemeGroupVersion] }

// Resource is resource.k8s.io/v1: ResourceClaims and -Slices.
func (l Lane) Resource() rest.Interface { return l.groups[resourcev1.SchemeGroupVersion] }

// Group is any of the groups above, or one of Config.Groups; nil: unknown.
func (l Lane) Group(gv schema.GroupVersion) rest.Interface { return l.groups[gv] }
