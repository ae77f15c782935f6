package volume

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Plugin handles one kind of volume source. Safe for concurrent use; all
// methods but Name and Supports may block until ctx ends; all are idempotent:
// the call after a crash is the same call as the first.
type Plugin interface {
	// Name is the stock plugin name, such as "kubernetes.io/empty-dir"; it
	// names the directory under pods/UID/volumes (with "/" as "~").
	Name() string
	// Supports says whether this plugin handles volumes from there.
	Supports(s Source) bool
	// Mount makes the volume usable and says where it is.
	Mount(ctx context.Context, req MountRequest) (MountResult, error)
	// Mounted reads from the host whether Mount is complete for that volume,
	// and where it is then.
	Mounted(ctx context.Context, req MountedRequest) (MountedResult, error)
	// Unmount undoes Mount, also a Mount or an Unmount that stopped half way,
	// and removes the volume's own directory. The spec may be gone: only UID,
	// Volume, Dir and MetaDir are sure to be set.
	Unmount(ctx context.Context, req UnmountRequest) error
}

// MountRequest is one volume of one pod.
type MountRequest struct {
	Pod *corev1.Pod
	Source
	// Dir is the volume's own directory, pods/UID/volumes/PLUGIN/NAME, with
	// [Source.Name]. The plugin makes it, with its parents, when it needs it. For
	// a block device it is pods/UID/volumeDevices/PLUGIN/NAME, which may as well
	// become a link or a file.
	Dir string
	// MetaDir is where the plugin may note what it must know after a restart,
	// pods/UID/plugins/PLUGIN/NAME. The plugin makes it when it needs it; the
	// manager removes it after Unmount.
	MetaDir string
	// FSGroup is the group that shall own the volume's files; nil: leave them,
	// as for a block device and what the pod may only read. A plugin that does
	// not see to it itself sets [MountResult.SetOwner].
	FSGroup *FSGroup
}

// FSGroup is fsGroup and fsGroupChangePolicy of a pod's securityContext.
type FSGroup struct {
	ID int64
	// Policy is FSGroupChangeAlways, also where the pod does not say.
	Policy corev1.PodFSGroupChangePolicy
}

// MountResult says where the volume is. For most plugins that is Dir; for
// hostPath it is the path of the spec, and for a block device the device, or
// what links to it or has it mounted.
type MountResult struct {
	HostPath string
	// RefreshAt is when to call Mount again although no object changed, as for
	// a token that is to be renewed; zero: never. See [MountedResult.Follows].
	RefreshAt time.Time
	// SetOwner asks the manager to give the files at HostPath to
	// [MountRequest.FSGroup], if there is one. The volume counts as mounted once
	// that is done: what was cut off is done by the next Mount.
	SetOwner bool
}

// MountedRequest asks about one volume.
type MountedRequest struct {
	UID     string
	Dir     string
	MetaDir string
	// Block says that Dir is a link to a device.
	Block bool
	// Source has only the name of its Volume when the pod's spec is gone; its
	// PersistentVolume is as it was at the mount.
	Source
}

// MountedResult tells how a volume stands.
type MountedResult struct {
	// Mounted is false also while a mount is half done.
	Mounted bool
	// HostPath is where the volume is, once it is mounted.
	HostPath string
	// ReadOnly is set where containers must not write, whatever they ask.
	ReadOnly bool
	// KeepLabels is set where the files are not the pod's to have another SELinux
	// label: a hostPath, for one.
	KeepLabels bool
	// Image is what the runtime knows an image by that it is to mount, instead
	// of a path of the host.
	Image string
	// Follows says that the content follows objects that may change: Mount is
	// called again to bring it up to date. Such a call that fails must leave
	// the content as it was.
	Follows bool
}

// UnmountRequest is one volume to take away.
type UnmountRequest struct {
	UID string
	// Volume is the volume's name in Dir, as [Source.Name].
	Volume string
	Dir    string
	// Block says that Dir is a link to a device.
	Block bool
	// MetaDir is the plugin's notes, see MountRequest.
	MetaDir string
	// Mounts are the mount points at and below Dir, read just now, deepest first.
	Mounts []string
}
