package csi

import (
	"slices"
	"strconv"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"nodekit.dev/volume"
)

// accessMode is that of a volume, in CSI's words: the first of the
// PersistentVolume's, as with the stock kubelet.
func accessMode(modes []corev1.PersistentVolumeAccessMode, multiWriter bool) csipb.VolumeCapability_AccessMode_Mode {
	mode := corev1.ReadWriteOnce
	if len(modes) > 0 {
		mode = modes[0]
	}
	switch mode {
	case corev1.ReadOnlyMany:
		return csipb.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	case corev1.ReadWriteMany:
		return csipb.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	case corev1.ReadWriteOncePod:
		if multiWriter {
			return csipb.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
		}
	case corev1.ReadWriteOnce:
		if multiWriter {
			return csipb.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
		}
	}
	return csipb.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
}

// capability is what the driver is told of a volume. Group is the fsGroup that
// it sees to itself, label that of SELinux.
func capability(v described, c Capabilities, group *int64, label string) *csipb.VolumeCapability {
	out := &csipb.VolumeCapability{AccessMode: &csipb.VolumeCapability_AccessMode{Mode: accessMode(v.accessModes, c.SingleNodeMultiWriter)}}
	if v.block {
		out.AccessType = &csipb.VolumeCapability_Block{Block: &csipb.VolumeCapability_BlockVolume{}}
		return out
	}
	mount := &csipb.VolumeCapability_MountVolume{FsType: v.fsType, MountFlags: slices.Clone(v.options)}
	if label != "" {
		mount.MountFlags = append(mount.MountFlags, "context="+strconv.Quote(label))
	}
	if group != nil {
		mount.VolumeMountGroup = strconv.FormatInt(*group, 10)
	}
	out.AccessType = &csipb.VolumeCapability_Mount{Mount: mount}
	return out
}

// mountGroup is the fsGroup that the driver sees to; nil: it does not, or there
// is none.
func mountGroup(c Capabilities, group *volume.FSGroup) *int64 {
	if group == nil || !c.VolumeMountGroup {
		return nil
	}
	return &group.ID
}

// setOwner says whether the agent gives the volume's files to the pod's fsGroup.
func setOwner(v described, c Capabilities, policy storagev1.FSGroupPolicy) bool {
	if v.block || v.readOnly || c.VolumeMountGroup {
		return false
	}
	switch policy {
	case storagev1.NoneFSGroupPolicy:
		return false
	case storagev1.FileFSGroupPolicy:
		return true
	case storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy:
	}
	if v.fsType == "" {
		return false
	}
	return v.ephemeral() || slices.ContainsFunc(v.accessModes, func(m corev1.PersistentVolumeAccessMode) bool {
		return m == corev1.ReadWriteOnce || m == corev1.ReadWriteOncePod
	})
}
