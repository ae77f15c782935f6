package source

import corev1 "k8s.io/api/core/v1"

const (
	defaultFileMode     int32 = 0o644
	defaultTokenSeconds int64 = 3600
)

func defaultVolume(v *corev1.Volume) {
	s := &v.VolumeSource
	if *s == (corev1.VolumeSource{}) {
		s.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if s.HostPath != nil {
		orPointer(&s.HostPath.Type, corev1.HostPathUnset)
	}
	if s.Secret != nil {
		orPointer(&s.Secret.DefaultMode, defaultFileMode)
	}
	if s.ConfigMap != nil {
		orPointer(&s.ConfigMap.DefaultMode, defaultFileMode)
	}
	if s.DownwardAPI != nil {
		orPointer(&s.DownwardAPI.DefaultMode, defaultFileMode)
		defaultDownward(s.DownwardAPI.Items)
	}
	if s.Projected != nil {
		defaultProjected(s.Projected)
	}
	if s.Image != nil {
		orDefault(&s.Image.PullPolicy, pullPolicyOf(s.Image.Reference))
	}
	if s.Ephemeral != nil && s.Ephemeral.VolumeClaimTemplate != nil {
		orPointer(&s.Ephemeral.VolumeClaimTemplate.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	}
	defaultRemoteVolume(s)
}

func defaultProjected(p *corev1.ProjectedVolumeSource) {
	orPointer(&p.DefaultMode, defaultFileMode)
	for i := range p.Sources {
		if p.Sources[i].DownwardAPI != nil {
			defaultDownward(p.Sources[i].DownwardAPI.Items)
		}
		if token := p.Sources[i].ServiceAccountToken; token != nil {
			orPointer(&token.ExpirationSeconds, defaultTokenSeconds)
		}
	}
}

func defaultDownward(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		defaultFieldRef(items[i].FieldRef)
	}
}

// defaultRemoteVolume holds the sources that talk to a storage system.
func defaultRemoteVolume(s *corev1.VolumeSource) {
	if s.ISCSI != nil {
		orDefault(&s.ISCSI.ISCSIInterface, "default")
	}
	if s.RBD != nil {
		orDefault(&s.RBD.RBDPool, "rbd")
		orDefault(&s.RBD.RadosUser, "admin")
		orDefault(&s.RBD.Keyring, "/etc/ceph/keyring")
	}
	if s.AzureDisk != nil {
		orPointer(&s.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		orPointer(&s.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
		orPointer(&s.AzureDisk.FSType, "ext4")
		orPointer(&s.AzureDisk.ReadOnly, false)
	}
	if s.ScaleIO != nil {
		orDefault(&s.ScaleIO.StorageMode, "ThinProvisioned")
		orDefault(&s.ScaleIO.FSType, "xfs")
	}
}
