package status

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/runtime"
)

// AnnotationLocalObjects says of a mirror pod that its static pod has ConfigMaps
// and Secrets of the node, which the mirror does not show.
const AnnotationLocalObjects = "nodekit.dev/local-objects"

// mirrorOf is the pod that stands for a static pod in the API server.
func mirrorOf(static *corev1.Pod, owner *corev1.Node) *corev1.Pod {
	controller := true
	mirror := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: static.Namespace, Name: static.Name, Labels: static.Labels,
			Annotations: maps.Clone(static.Annotations), Finalizers: static.Finalizers,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Node", Name: owner.Name, UID: owner.UID, Controller: &controller,
			}},
		},
		Spec: *static.Spec.DeepCopy(),
	}
	if mirror.Annotations == nil {
		mirror.Annotations = map[string]string{}
	}
	mirror.Annotations[runtime.AnnotationConfigMirror] = static.Annotations[runtime.AnnotationConfigHash]
	if withoutLocalObjects(&mirror.Spec) {
		mirror.Annotations[AnnotationLocalObjects] = "left out"
	}
	return mirror
}

// withoutLocalObjects takes ConfigMaps and Secrets out of a mirror, and says
// whether there were any: the API server takes no pod of a node's that refers to
// its objects, and these are not even its own. Volumes stay, empty, as
// containers mount them.
func withoutLocalObjects(spec *corev1.PodSpec) bool {
	left := len(spec.ImagePullSecrets) > 0
	spec.ImagePullSecrets = nil
	for i := range spec.Volumes {
		if v := &spec.Volumes[i]; local(&v.VolumeSource) {
			v.VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
			left = true
		}
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			c := &list[i]
			env, from := plain(c.Env), plainSets(c.EnvFrom)
			left = left || len(env) < len(c.Env) || len(from) < len(c.EnvFrom)
			c.Env, c.EnvFrom = env, from
		}
	}
	return left
}

// local says that ConfigMaps or Secrets fill the volume.
func local(v *corev1.VolumeSource) bool {
	if v.ConfigMap != nil || v.Secret != nil {
		return true
	}
	if v.Projected == nil {
		return false
	}
	for _, s := range v.Projected.Sources {
		if s.ConfigMap != nil || s.Secret != nil {
			return true
		}
	}
	return false
}

// plain are the variables that name neither.
func plain(env []corev1.EnvVar) (out []corev1.EnvVar) {
	for _, v := range env {
		if v.ValueFrom == nil || v.ValueFrom.ConfigMapKeyRef == nil && v.ValueFrom.SecretKeyRef == nil {
			out = append(out, v)
		}
	}
	return out
}

func plainSets(from []corev1.EnvFromSource) (out []corev1.EnvFromSource) {
	for _, f := range from {
		if f.ConfigMapRef == nil && f.SecretRef == nil {
			out = append(out, f)
		}
	}
	return out
}
