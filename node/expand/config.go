package expand

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"nodekit.dev/volume"
)

// Config says when and for whom. Default has all but NodeName.
type Config struct {
	// NodeName is the name of this node, for messages. Required.
	NodeName string
	// Interval is how often a claim is read that the node may not watch; default:
	// a minute, as with the stock kubelet. It varies by a tenth.
	Interval time.Duration
	// Width is how many volumes are grown at the same time; default: 10.
	Width int
	// Observer's functions may be nil.
	Observer Observer
}

// Default is what the stock kubelet does.
func Default() Config { return Config{Interval: time.Minute, Width: 10} }

// Validate names every field that is wrong.
func (c Config) Validate() error {
	var errs []error
	if c.NodeName == "" {
		errs = append(errs, errors.New("NodeName: must not be empty"))
	}
	if c.Interval <= 0 {
		errs = append(errs, fmt.Errorf("the Interval: %v must be above 0", c.Interval))
	}
	if c.Width < 1 {
		errs = append(errs, fmt.Errorf("the Width: %d must be at least 1", c.Width))
	}
	return errors.Join(errs...)
}

// Observer is told what happens, for metrics. It must not block.
type Observer struct {
	// Grew is called after each try to grow a volume that is mounted. Those made
	// while a volume is mounted are told by who mounts.
	Grew func(Growth)
}

// Parts is what the expander calls.
type Parts struct {
	// Core is v1. Required.
	Core rest.Interface
	// Volumes lists the volumes of claims on this node; volume.Manager has it as
	// Recorded. Required.
	Volumes func() ([]volume.Recorded, error)
	// Grower grows them. Required.
	Grower Grower
	// Event takes what users shall hear of; nil: nobody does. It must not block.
	Event func(Event)
	// Log is nil for no logs.
	Log *slog.Logger
}

// Grower grows what is mounted. Safe for concurrent use.
type Grower interface {
	// Grows says whether this node can grow volumes of that kind at all. It must
	// not block.
	Grows(v volume.Recorded) bool
	// SizeOf is how big this node made the volume, or found it when it mounted it
	// first, in bytes; 0: nobody knows. It reads the host.
	SizeOf(v volume.Recorded) (int64, error)
	// Expand grows the volume to that many bytes, and says how big it is then; 0:
	// its driver has nothing to do on nodes. It may block until ctx ends, and is
	// idempotent: the call after a crash is the same call. A [*Failure] says what
	// kind of error it is; all others may go away.
	Expand(ctx context.Context, v volume.Recorded, size int64) (int64, error)
}

// Failure is why a volume was not grown.
type Failure struct {
	Kind FailureKind
	Err  error
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// FailureKind says what becomes of a growth that failed.
type FailureKind int

// The kinds of failures.
const (
	// Transient: nobody knows whether it was done; it is tried again.
	Transient FailureKind = iota
	// Final: it was not done, and is tried again.
	Final
	// InUse: it can not be done while the volume is in use; this node does not
	// try again.
	InUse
	// Infeasible: it can never be done, and the claim is told.
	Infeasible
)

// Growth is one try.
type Growth struct {
	// Volume is what was grown.
	Volume volume.Recorded
	// Size is how big it is now; with Err: was to be.
	Size int64
	Took time.Duration
	Err  error
}

// Event is one for the users of a volume: about the pod, or the claim.
type Event struct {
	PodUID string                  // empty: it is about the claim
	Claim  *corev1.ObjectReference // nil: it is about the pod
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type, Reason, Message string
}
