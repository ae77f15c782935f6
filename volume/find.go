package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/reasoned"
)

// errNotMounted is the answer for a volume of the pod that nobody mounted.
var errNotMounted = errors.New("volume is not mounted")

// resolve says where a volume of the pod's spec comes from and who handles it.
// It asks what a claim is bound to, and may block for that.
func (m *Manager) resolve(ctx context.Context, pod *corev1.Pod, name string) (Source, Plugin, error) {
	v, err := entry(pod, name)
	if err != nil {
		return Source{}, nil, reasoned.New(reasonMount, err).Final()
	}
	s := Source{Volume: v}
	if namesClaim(v) {
		if s, err = m.claim(ctx, pod, v); err != nil {
			return Source{}, nil, err
		}
	}
	plugin, err := m.supporting(s)
	if err != nil {
		err = reasoned.New(reasonMount, err).Final()
	}
	return s, plugin, err
}

func (m *Manager) claim(ctx context.Context, pod *corev1.Pod, v corev1.Volume) (Source, error) {
	if m.claims == nil {
		return Source{}, reasoned.New(reasonMount, errors.New("it names a PersistentVolumeClaim, and this node has no cluster that could tell what it is bound to")).Final()
	}
	s, err := m.claims.Claimed(ctx, pod, v)
	if err != nil {
		return Source{}, err
	}
	if s.PersistentVolume == nil {
		return Source{}, fmt.Errorf("the claim of volume %q is bound to nothing", v.Name)
	}
	return s, checkName("PersistentVolume", s.PersistentVolume.Name)
}

// known is resolve for a volume that was mounted, or at least tried to. It asks
// nobody.
func (m *Manager) known(pod *corev1.Pod, name string) (Source, Plugin, error) {
	v, err := entry(pod, name)
	if err != nil {
		return Source{}, nil, err
	}
	s := Source{Volume: v}
	if namesClaim(v) {
		record, ok, err := m.readClaim(string(pod.UID), name)
		if err == nil && !ok {
			err = errNotMounted
		}
		if err != nil {
			return Source{}, nil, err
		}
		s = record.source(v)
	}
	plugin, err := m.supporting(s)
	return s, plugin, err
}

// entry looks a volume up in the pod's spec.
func entry(pod *corev1.Pod, name string) (corev1.Volume, error) {
	if err := errors.Join(checkName("pod UID", string(pod.UID)), checkName("volume", name)); err != nil {
		return corev1.Volume{}, err
	}
	i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	if i < 0 {
		return corev1.Volume{}, errors.New("the pod has no volume of that name")
	}
	return pod.Spec.Volumes[i], nil
}

func (m *Manager) supporting(s Source) (Plugin, error) {
	for _, p := range m.plugins {
		if p.Supports(s) {
			return p, nil
		}
	}
	return nil, errors.New("no volume plugin matched")
}
