package bench

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// objectName is that of the ConfigMap and of the Secret that pods mount.
const objectName = "bench"

// podWithoutVolumes has not even the token that the API server adds.
func podWithoutVolumes(name, node string) *corev1.Pod {
	pod := newPod(name, node)
	pod.Spec.AutomountServiceAccountToken = new(false)
	return pod
}

// podWithVolumes is the same with a volume of each of five kinds.
func podWithVolumes(name, node string) *corev1.Pod {
	pod := podWithoutVolumes(name, node)
	for kind, source := range map[string]corev1.VolumeSource{
		"config": {ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: objectName}}},
		"secret": {Secret: &corev1.SecretVolumeSource{SecretName: objectName}},
		"token": {Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		}}},
		"empty": {EmptyDir: &corev1.EmptyDirVolumeSource{}},
		"fields": {DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "name", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}},
		}}},
	} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: kind, VolumeSource: source})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: kind, MountPath: "/" + kind})
	}
	return pod
}

// makeObjects makes the ConfigMap and the Secret, unless they are there.
func (c *cluster) makeObjects(ctx context.Context) error {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: objectName}
	config := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta, Data: map[string]string{"key": "value"}}
	secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta, Data: map[string][]byte{"key": []byte("value")}}
	err1 := c.api.Post().Namespace(namespace).Resource("configmaps").Body(config).Do(ctx).Error()
	err2 := c.api.Post().Namespace(namespace).Resource("secrets").Body(secret).Do(ctx).Error()
	return errors.Join(unlessExists(err1), unlessExists(err2))
}

func unlessExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
