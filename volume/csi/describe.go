package csi

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
)

// volumeKey is what a driver knows a volume by.
type volumeKey struct{ driver, handle string }

// described is what the API says of one volume of one pod.
type described struct {
	volumeKey
	name         string // the last part of its directory
	mode         storagev1.VolumeLifecycleMode
	block        bool
	readOnly     bool
	attached     bool
	fsType       string
	options      []string
	accessModes  []corev1.PersistentVolumeAccessMode
	attributes   map[string]string
	published    map[string]string // by the driver's controller
	attachment   string
	size         int64 // of the PersistentVolume, bytes
	claimSize    int64
	stageSecret  *corev1.SecretReference
	nodeSecret   *corev1.SecretReference
	expandSecret *corev1.SecretReference
}

// mountOptionsAnnotation is older than spec.mountOptions and still heeded.
const mountOptionsAnnotation = "volume.beta.kubernetes.io/mount-options"

// describe is for a volume of the pod of that UID and namespace.
func describe(uid, namespace string, s volume.Source) (described, error) {
	if s.PersistentVolume != nil {
		return describePersistent(s)
	}
	return describeInline(uid, namespace, s.Volume)
}

func describePersistent(s volume.Source) (described, error) {
	pv := s.PersistentVolume
	src := pv.Spec.CSI
	if src == nil {
		return described{}, fmt.Errorf("PersistentVolume %q is not one of a CSI driver", pv.Name)
	}
	d := described{
		volumeKey: volumeKey{src.Driver, src.VolumeHandle}, name: pv.Name, mode: storagev1.VolumeLifecyclePersistent,
		block: s.Block(), readOnly: s.ReadOnly, attached: s.Attached, fsType: src.FSType, options: pv.Spec.MountOptions,
		accessModes: pv.Spec.AccessModes, attributes: src.VolumeAttributes, published: s.PublishContext, attachment: s.AttachmentID,
		size: pv.Spec.Capacity.Storage().Value(), claimSize: s.ClaimSize,
		stageSecret: src.NodeStageSecretRef, nodeSecret: src.NodePublishSecretRef, expandSecret: src.NodeExpandSecretRef,
	}
	if old := pv.Annotations[mountOptionsAnnotation]; old != "" {
		d.options = strings.Split(old, ",")
	}
	return d, d.check()
}

func describeInline(uid, namespace string, v corev1.Volume) (described, error) {
	src := v.CSI
	if src == nil {
		return described{}, fmt.Errorf("volume %q is not one of a CSI driver", v.Name)
	}
	d := described{
		volumeKey: volumeKey{src.Driver, inlineHandle(uid, v.Name)}, name: v.Name, mode: storagev1.VolumeLifecycleEphemeral,
		readOnly: src.ReadOnly != nil && *src.ReadOnly, attributes: src.VolumeAttributes,
	}
	if src.FSType != nil {
		d.fsType = *src.FSType
	}
	if ref := src.NodePublishSecretRef; ref != nil {
		d.nodeSecret = &corev1.SecretReference{Namespace: namespace, Name: ref.Name}
	}
	return d, d.check()
}

// inlineHandle is how the stock kubelet names an inline volume to its driver.
func inlineHandle(uid, name string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(uid+name)))
}

// check refuses what must not become a part of a path.
func (d described) check() error {
	if d.driver == "" || d.handle == "" || strings.ContainsAny(d.driver, "/\x00") || d.driver == "." || d.driver == ".." {
		return reasoned.New(reasonMount, errors.New("the volume names no CSI driver, or no volumeHandle")).Final()
	}
	return nil
}

func (d described) ephemeral() bool { return d.mode == storagev1.VolumeLifecycleEphemeral }

const reasonMount = "FailedMount"
