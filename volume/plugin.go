package volume

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Plugin handles one kind of volume source. Safe for concurrent use; all
// methods but Name and Supports may block until ctx ends; all are idempotent.
type Plugin interface {
	// Name is the stock plugin name, such as "kubernetes.io/empty-dir"; it
	// names the directory under pods/UID/volumes (with "/" as "~").
	Name() string
	// Supports says whether this plugin handles that volume.
	Supports(v corev1.Volume) bool
	// Mount makes the volume usable and says where it is.
	Mount(ctx context.Context, req MountRequest) (MountResult, error)
	// Unmount undoes Mount. The spec may be gone: only UID, Volume and Dir are
	// sure to be set.
	Unmount(ctx context.Context, req UnmountRequest) error
}

// MountRequest is one volume of one pod.
type MountRequest struct {
	Pod    *corev1.Pod
	Volume corev1.Volume
	// Dir is the volume's own directory, pods/UID/volumes/PLUGIN/NAME. The
	// plugin makes it when it needs it.
	Dir string
}

// MountResult says where the volume is. For most plugins that is Dir; for
// hostPath it is the path of the spec.
type MountResult struct{ HostPath string }

// UnmountRequest is one volume to take away.
type UnmountRequest struct {
	UID    string
	Volume string
	Dir    string
}
