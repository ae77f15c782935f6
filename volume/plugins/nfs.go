package plugins

import (
	"context"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/volume"
)

// NFS gives nfs volumes, of pods and PersistentVolumes, with mount.nfs of the
// host.
type NFS struct {
	// Mounts mounts; nil means [HostMounts].
	Mounts Mounts
}

// Name implements [volume.Plugin].
func (NFS) Name() string { return "kubernetes.io/nfs" }

// Supports implements [volume.Plugin].
func (NFS) Supports(s volume.Source) bool { return nfsSource(s) != nil }

func nfsSource(s volume.Source) *corev1.NFSVolumeSource {
	if s.PersistentVolume != nil {
		return s.PersistentVolume.Spec.NFS
	}
	return s.Volume.NFS
}

func (p NFS) mounts() Mounts {
	if p.Mounts == nil {
		return HostMounts{}
	}
	return p.Mounts
}

// Mount mounts what the server exports. It blocks as long as the server says
// nothing, ctx at the latest.
func (p NFS) Mount(ctx context.Context, req volume.MountRequest) (volume.MountResult, error) {
	result := volume.MountResult{HostPath: req.Dir}
	here, _, err := mountsOn(p.mounts(), req.Dir)
	if err != nil || len(here) > 0 {
		return result, err
	}
	if err := os.MkdirAll(req.Dir, parentMode); err != nil {
		return result, err
	}
	source := nfsSource(req.Source)
	server := source.Server
	if strings.Contains(server, ":") {
		server = "[" + server + "]" // an IPv6 address
	}
	readOnly := req.ReadOnly || req.PersistentVolume == nil && source.ReadOnly
	return result, p.mounts().Mount(ctx, server+":"+source.Path, req.Dir, "nfs", mountOptions(req.Source, readOnly))
}

// Mounted asks the kernel, never the server.
func (p NFS) Mounted(_ context.Context, req volume.MountedRequest) (volume.MountedResult, error) {
	here, _, err := mountsOn(p.mounts(), req.Dir)
	readOnly := req.ReadOnly || req.PersistentVolume == nil && req.Volume.NFS != nil && req.Volume.NFS.ReadOnly
	return volume.MountedResult{Mounted: len(here) > 0, HostPath: req.Dir, ReadOnly: readOnly, KeepLabels: true}, err
}

// Unmount implements [volume.Plugin]. A server that does not answer is left by
// force after a minute.
func (p NFS) Unmount(ctx context.Context, req volume.UnmountRequest) error {
	return takeOff(ctx, p.mounts(), req)
}
