package source

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// RefuseReferences refuses pods that refer to objects of the API server, in the
// stock kubelet's words. With local, ConfigMaps and Secrets are not among them:
// the agent has them from elsewhere. It is for [Config.Refuse].
func RefuseReferences(local bool) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		if kind := references(&pod.Spec, local); kind != "" {
			return fmt.Errorf("static pods may not reference %s", kind)
		}
		return nil
	}
}

// references is the first kind of object that the pod refers to; empty: none.
func references(spec *corev1.PodSpec, local bool) string {
	switch {
	case spec.ServiceAccountName != "":
		return "serviceaccounts"
	case !local && refersToSecrets(spec):
		return "secrets"
	case !local && refersToConfigMaps(spec):
		return "configmaps"
	case len(spec.ResourceClaims) > 0:
		return "resourceclaims"
	}
	for i := range spec.Volumes {
		if kind := volumeReference(&spec.Volumes[i].VolumeSource); kind != "" {
			return kind
		}
	}
	return ""
}

// volumeReference is the kind that a volume can not do without, ConfigMaps and
// Secrets aside.
func volumeReference(v *corev1.VolumeSource) string {
	switch {
	case v.CSI != nil:
		return "csidrivers (via CSI volumes)"
	case v.Glusterfs != nil:
		return "endpoints (via glusterFS volumes)"
	case v.PersistentVolumeClaim != nil:
		return "persistentvolumeclaims"
	case v.Ephemeral != nil:
		return "persistentvolumeclaims (via ephemeral volumes)"
	case v.Projected == nil:
		return ""
	}
	for _, s := range v.Projected.Sources {
		switch {
		case s.ServiceAccountToken != nil:
			return "serviceaccounts (via projected volumes)"
		case s.ClusterTrustBundle != nil:
			return "clustertrustbundles"
		case s.PodCertificate != nil:
			return "podcertificates"
		}
	}
	return ""
}

func refersToSecrets(spec *corev1.PodSpec) bool {
	if len(spec.ImagePullSecrets) > 0 || inEnvironment(spec, func(v *corev1.EnvVarSource, from *corev1.EnvFromSource) bool {
		return v != nil && v.SecretKeyRef != nil || from != nil && from.SecretRef != nil
	}) {
		return true
	}
	return inVolumes(spec, secretOf, func(p corev1.VolumeProjection) bool { return p.Secret != nil })
}

// secretOf says whether a volume names a Secret, of whatever use to it.
func secretOf(v *corev1.VolumeSource) bool {
	switch {
	case v.Secret != nil, v.AzureFile != nil:
		return true
	case v.CephFS != nil:
		return v.CephFS.SecretRef != nil
	case v.Cinder != nil:
		return v.Cinder.SecretRef != nil
	case v.FlexVolume != nil:
		return v.FlexVolume.SecretRef != nil
	case v.RBD != nil:
		return v.RBD.SecretRef != nil
	case v.ScaleIO != nil:
		return v.ScaleIO.SecretRef != nil
	case v.ISCSI != nil:
		return v.ISCSI.SecretRef != nil
	case v.StorageOS != nil:
		return v.StorageOS.SecretRef != nil
	case v.CSI != nil:
		return v.CSI.NodePublishSecretRef != nil
	}
	return false
}

func refersToConfigMaps(spec *corev1.PodSpec) bool {
	return inEnvironment(spec, func(v *corev1.EnvVarSource, from *corev1.EnvFromSource) bool {
		return v != nil && v.ConfigMapKeyRef != nil || from != nil && from.ConfigMapRef != nil
	}) || inVolumes(spec, func(v *corev1.VolumeSource) bool { return v.ConfigMap != nil },
		func(p corev1.VolumeProjection) bool { return p.ConfigMap != nil })
}

// inVolumes asks about each volume, and each source of those that are projected.
func inVolumes(spec *corev1.PodSpec, of func(*corev1.VolumeSource) bool, projected func(corev1.VolumeProjection) bool) bool {
	for i := range spec.Volumes {
		v := &spec.Volumes[i].VolumeSource
		if of(v) {
			return true
		}
		if v.Projected == nil {
			continue
		}
		for _, p := range v.Projected.Sources {
			if projected(p) {
				return true
			}
		}
	}
	return false
}

// inEnvironment asks about each variable with a source, and each set of
// variables, of all containers.
func inEnvironment(spec *corev1.PodSpec, refers func(*corev1.EnvVarSource, *corev1.EnvFromSource) bool) bool {
	asked := func(env []corev1.EnvVar, from []corev1.EnvFromSource) bool {
		for i := range env {
			if refers(env[i].ValueFrom, nil) {
				return true
			}
		}
		for i := range from {
			if refers(nil, &from[i]) {
				return true
			}
		}
		return false
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if asked(list[i].Env, list[i].EnvFrom) {
				return true
			}
		}
	}
	for i := range spec.EphemeralContainers {
		if c := &spec.EphemeralContainers[i]; asked(c.Env, c.EnvFrom) {
			return true
		}
	}
	return false
}
