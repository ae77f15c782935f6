package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// refusedInVolume looks at the fields of a volume whose feature gate is off.
func (b *Builder) refusedInVolume(v *corev1.Volume, at string) []refusal {
	var out []refusal
	if v.EmptyDir != nil && v.EmptyDir.Mode != nil && !b.cfg.EmptyDirModes {
		out = append(out, refusal{at + ".emptyDir.mode", "the feature gate EmptyDirVolumeMode is off", ""})
	}
	if b.cfg.FileUsers {
		return out
	}
	for _, field := range fileUsers(v) {
		out = append(out, refusal{at + "." + field, "the feature gate AtomicWriteVolumeUserFields is off", ""})
	}
	return out
}

// fileUsers are the fields of a volume that name an owner of its files.
func fileUsers(v *corev1.Volume) []string {
	var u users
	if s := v.Secret; s != nil {
		u.add("secret.defaultUser", s.DefaultUser)
		u.items("secret.items", s.Items)
	}
	if s := v.ConfigMap; s != nil {
		u.add("configMap.defaultUser", s.DefaultUser)
		u.items("configMap.items", s.Items)
	}
	if s := v.DownwardAPI; s != nil {
		u.add("downwardAPI.defaultUser", s.DefaultUser)
		u.fields("downwardAPI.items", s.Items)
	}
	if s := v.Projected; s != nil {
		u.add("projected.defaultUser", s.DefaultUser)
		for i := range s.Sources {
			u.source(fmt.Sprintf("projected.sources[%d].", i), &s.Sources[i])
		}
	}
	return u
}

// users are paths of fields that are set.
type users []string

func (u *users) add(field string, user *int64) {
	if user != nil {
		*u = append(*u, field)
	}
}

func (u *users) items(at string, items []corev1.KeyToPath) {
	for i, item := range items {
		u.add(fmt.Sprintf("%s[%d].user", at, i), item.User)
	}
}

func (u *users) fields(at string, items []corev1.DownwardAPIVolumeFile) {
	for i, item := range items {
		u.add(fmt.Sprintf("%s[%d].user", at, i), item.User)
	}
}

func (u *users) source(at string, s *corev1.VolumeProjection) {
	if s.Secret != nil {
		u.items(at+"secret.items", s.Secret.Items)
	}
	if s.ConfigMap != nil {
		u.items(at+"configMap.items", s.ConfigMap.Items)
	}
	if s.DownwardAPI != nil {
		u.fields(at+"downwardAPI.items", s.DownwardAPI.Items)
	}
	if s.ServiceAccountToken != nil {
		u.add(at+"serviceAccountToken.user", s.ServiceAccountToken.User)
	}
	if s.ClusterTrustBundle != nil {
		u.add(at+"clusterTrustBundle.user", s.ClusterTrustBundle.User)
	}
	if s.PodCertificate != nil {
		u.add(at+"podCertificate.user", s.PodCertificate.User)
	}
}
