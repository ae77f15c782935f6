package plugins

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/volume"
)

// The getters below may block until their context ends, are called
// concurrently and again and again, and answer with shared objects that are
// only read. An error that answers NotFound() bool, or is an API error of that
// kind, says that the object is known not to exist; only that makes an optional
// object optional. Node/objects fits them.

// ConfigMaps finds ConfigMaps for the pod of that UID.
type ConfigMaps interface {
	ConfigMap(ctx context.Context, uid types.UID, namespace, name string) (*corev1.ConfigMap, error)
}

// Secrets finds Secrets for the pod of that UID.
type Secrets interface {
	Secret(ctx context.Context, uid types.UID, namespace, name string) (*corev1.Secret, error)
}

// TrustBundles finds ClusterTrustBundles for the pod of that UID: one by its
// name, or those of a signer that a selector matches (nil: none, empty: all).
// It answers with their certificates, PEM, and whatever is between them.
type TrustBundles interface {
	ClusterTrustBundle(ctx context.Context, uid types.UID, name string) (bundle string, err error)
	ClusterTrustBundles(ctx context.Context, uid types.UID, signer string, selector *metav1.LabelSelector) (bundles []string, err error)
}

// Tokens issues tokens of service accounts, bound to a pod. It may hand out
// one that it issued before.
type Tokens interface {
	Token(ctx context.Context, req TokenRequest) (Token, error)
}

// TokenRequest says whose token, for whom and for how long.
type TokenRequest struct {
	PodUID         types.UID
	PodName        string
	Namespace      string
	ServiceAccount string
	Audience       string // empty: the API server
	Expiration     time.Duration
}

// Token is one token.
type Token struct {
	Value string
	// Expiration is when it ends, by the API server's clock.
	Expiration time.Time
	// RefreshAt is when to ask again for a newer one; zero: never.
	RefreshAt time.Time
}

// PodCertificates brings the private key and the certificate chain, both PEM,
// of one podCertificate source: that of the index among the sources of the
// projected volume. It is an error as long as none is issued.
type PodCertificates interface {
	PodCertificate(ctx context.Context, pod *corev1.Pod, volume string, source int) (key, chain []byte, err error)
}

// Sources are where volumes get their content from. A pod whose volume needs
// one that is nil waits, with an error that says so.
type Sources struct {
	ConfigMaps      ConfigMaps
	Secrets         Secrets
	TrustBundles    TrustBundles
	Tokens          Tokens
	PodCertificates PodCertificates
	// Images pulls those of image volumes.
	Images Images
	// Allocatable is what this node can give to pods: what the downward API
	// shows where a container has no limit. It must not block; nil: nothing.
	Allocatable func() corev1.ResourceList
	// TmpfsSize bounds what a pod's volume may hold in memory, in bytes; nil
	// or 0: half of the machine's memory.
	TmpfsSize func(*corev1.Pod) int64
	// Memory keeps Secrets, downward API and projected volumes off the disk, and
	// mounts emptyDir volumes in memory; nil: [HostMemory].
	Memory Memory
	// EmptyDirModes lets emptyDir volumes ask for a mode (gate EmptyDirVolumeMode,
	// Alpha, off).
	EmptyDirModes bool
	// FileUsers lets volumes that objects fill ask for the users of their files
	// (gate AtomicWriteVolumeUserFields, Alpha, off); else those fields are ignored.
	FileUsers bool
}

// Stock are all the plugins, in their order.
func Stock(s Sources) []volume.Plugin {
	all := Default()
	all[0] = EmptyDir{Memory: s.Memory, MemorySize: s.memorySize, Modes: s.EmptyDirModes}
	all = append(all, imagePlugin{s.Images})
	return append(all, FromObjects(s)...)
}

// memorySize is what the volumes in memory of a pod may hold.
func (s Sources) memorySize(pod *corev1.Pod) int64 {
	memory := s.allocatable()[corev1.ResourceMemory]
	limit := memory.Value()
	if s.TmpfsSize != nil {
		limit = lower(limit, s.TmpfsSize(pod))
	}
	return limit
}

// FromObjects are the plugins for volumes that objects fill: configMap, secret,
// downwardAPI and projected.
func FromObjects(s Sources) []volume.Plugin {
	if s.Memory == nil {
		s.Memory = HostMemory{}
	}
	return []volume.Plugin{configMapPlugin{s}, secretPlugin{s}, downwardPlugin{s}, projectedPlugin{s}}
}

// disk and inMemory are where the plugins keep their content.
func (s Sources) disk() content     { return content{} }
func (s Sources) inMemory() content { return content{memory: s.Memory, size: s.memorySize} }

func (s Sources) allocatable() corev1.ResourceList {
	if s.Allocatable == nil {
		return nil
	}
	return s.Allocatable()
}

// Errors of what an agent does not have.
var (
	errNoConfigMaps   = errors.New("this agent has no source of ConfigMaps")
	errNoSecrets      = errors.New("this agent has no source of Secrets")
	errNoTokens       = errors.New("this agent has no API server to issue service account tokens")
	errNoTrustBundles = errors.New("this agent has no source of ClusterTrustBundles")
	errNoPodCerts     = errors.New("this agent has no API server to request pod certificates from")
)
