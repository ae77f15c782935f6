package stats

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/volume"
)

// Usage is what a volume holds and could hold. Nil: nobody knows.
type Usage struct {
	// In bytes. Available is what is left for users that are not root; of a
	// directory, Capacity and Available are those of the file system it is on.
	Used, Capacity, Available *int64
	// In numbers of files, directories and links.
	Inodes, InodesUsed, InodesFree *int64
}

// Condition is what a CSI driver says of a volume along with its usage.
type Condition struct {
	Abnormal bool
	Message  string
}

// Stats are the last figures of one volume of a pod.
type Stats struct {
	UID       string
	Namespace string
	Pod       string
	// Volume is its name in the pod.
	Volume string
	// Kind is as [volume.Place.Kind].
	Kind string
	// Claim is empty without one.
	Claim volume.Claim
	// Block says that the pod has a device, not a file system.
	Block bool
	// At is when it was measured.
	At time.Time
	Usage
	// Condition is nil unless the driver tells, and [Config.Conditions] asks.
	Condition *Condition
	// Health are the adverse conditions that the driver reports, where
	// [Config.Health] asks and it answered at least once (HealthKnown), and since
	// when they are these.
	Health      []corev1.VolumeHealthCondition
	HealthKnown bool
	HealthSince time.Time
}

// Reader measures the volumes of one plugin.
type Reader interface {
	// Read may block until ctx ends. It is called concurrently, but not for one
	// volume: one that blocks for longer is given up, and not called again for
	// that volume before it returns. An error that answers RetryAfter is no failure:
	// it is asked again then.
	Read(ctx context.Context, req ReadRequest) (ReadResult, error)
}

// ReadRequest is one volume that is mounted.
type ReadRequest struct {
	Pod *corev1.Pod
	volume.Place
	// Condition and Health ask for those too, where the driver can tell.
	Condition bool
	Health    bool
}

// ReadResult is what was found.
type ReadResult struct {
	Usage
	Condition *Condition
	// Health counts if HealthKnown: else what was known before stays.
	Health      []corev1.VolumeHealthCondition
	HealthKnown bool
}

// ReaderFunc is a function as a [Reader].
type ReaderFunc func(context.Context, ReadRequest) (ReadResult, error)

// Read calls f.
func (f ReaderFunc) Read(ctx context.Context, req ReadRequest) (ReadResult, error) {
	return f(ctx, req)
}
