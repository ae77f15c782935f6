package csi

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/volume"
)

// Name is the plugin's, the stock one.
const Name = "kubernetes.io/csi"

// Config says where and how.
type Config struct {
	// RootDir is the agent's root directory, absolute.
	RootDir string
	// NodeName is this node's, for what the stock kubelet would read. Required.
	NodeName string
	// CallTimeout bounds one call of a driver. 0: 2 min, as the stock kubelet's.
	CallTimeout time.Duration
	// Width is how many calls of one driver may be in flight: one that hangs
	// holds up no other. 0: 10.
	Width int
	// Republish is how often volumes are published again whose driver asks for
	// that (requiresRepublish). 0: 1 min.
	Republish time.Duration
	// VolumeCondition reads the condition in the answer to NodeGetVolumeStats,
	// which CSI has removed, from drivers that still have that capability.
	VolumeCondition bool
	// Observer sees calls as they end.
	Observer Observer
}

// Validate checks it.
func (c Config) Validate() error {
	var errs []error
	if !filepath.IsAbs(c.RootDir) {
		errs = append(errs, fmt.Errorf("RootDir %q is not an absolute path", c.RootDir))
	}
	if c.NodeName == "" {
		errs = append(errs, errors.New("NodeName must not be empty"))
	}
	if c.CallTimeout < 0 || c.Width < 0 || c.Republish < 0 {
		errs = append(errs, errors.New("CallTimeout, Width and Republish must not be negative"))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	c.RootDir = filepath.Clean(c.RootDir)
	if c.CallTimeout == 0 {
		c.CallTimeout = 2 * time.Minute
	}
	if c.Width == 0 {
		c.Width = 10
	}
	if c.Republish == 0 {
		c.Republish = time.Minute
	}
	return c
}

// Observer is told what the plugin did, for metrics and for the statuses of
// claims. Its functions may be nil; they must not block, and are called
// concurrently.
type Observer struct {
	// Call is called after each call of a driver.
	Call func(Call)
	// Expanded is called after each NodeExpandVolume.
	Expanded func(Expansion)
	// Unstaged is called when a volume is not staged any more.
	Unstaged func(driver, handle string)
}

// Call is one finished call of a driver.
type Call struct {
	Driver string
	Method string // as gRPC has it, such as "/csi.v1.Node/NodeStageVolume"
	Code   string // such as "OK"
	Took   time.Duration
	Err    error
}

// Expansion is one NodeExpandVolume.
type Expansion struct {
	VolumeRequest
	// Size is how large the volume is now, in bytes; 0 with an error.
	Size int64
	// Mounting says that it was made while the volume was being mounted.
	Mounting bool
	Took     time.Duration
	Err      error
}

// Parts is what the plugin asks. Each may be nil: what needs it fails then.
type Parts struct {
	// Drivers are the CSIDriver objects; nil: drivers have the defaults.
	Drivers Drivers
	Secrets Secrets
	Tokens  Tokens
	// Connect makes connections to drivers; nil: [Sockets].
	Connect Connector
	// Wake says that what a pod's volume failed for the lack of may be there
	// now. It must not block; nil: its retry is waited for.
	Wake func(podUID string)
}

// Drivers finds CSIDriver objects. It may block until ctx ends and is called
// concurrently for each mount; the object is only read. An error that answers
// NotFound() true says that there is none.
type Drivers interface {
	CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error)
}

// Secrets finds Secrets for the pod of that UID; empty: for a volume that no pod
// is named for. It may block until ctx ends and is called concurrently.
type Secrets interface {
	Secret(ctx context.Context, uid types.UID, namespace, name string) (*corev1.Secret, error)
}

// Tokens issues tokens of service accounts, bound to a pod. It may block until
// ctx ends, is called concurrently, and may hand out one that it issued before.
type Tokens interface {
	Token(ctx context.Context, req TokenRequest) (Token, error)
}

// TokenRequest says whose token, for whom and for how long.
type TokenRequest struct {
	PodUID         types.UID
	PodName        string
	Namespace      string
	ServiceAccount string
	Audience       string        // empty: the API server
	Expiration     time.Duration // 0: an hour
}

// Token is one token.
type Token struct {
	Value      string
	Expiration time.Time
}

// Connector makes a connection to a driver, which its calls go through, and
// says how to close it. It must not block: the connection may be made by the
// first call. Called once for each registration.
type Connector interface {
	Connect(driver, endpoint string) (conn grpc.ClientConnInterface, closeConn func() error, err error)
}

// VolumeRequest names a volume of a pod.
type VolumeRequest struct {
	// UID is the pod's.
	UID string
	volume.Source
}
