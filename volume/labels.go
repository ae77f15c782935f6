package volume

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Labels says which SELinux label volumes are mounted with, so that nobody has
// to give it to each file. Safe for concurrent use. Volume/selinux has the stock
// kubelet's rules.
type Labels interface {
	// Label is called before each mount, and may block until ctx ends; empty: the
	// volume is mounted without. An error keeps it from being mounted, and answers
	// as those of a [Plugin] do. The same call again gives the same label.
	Label(ctx context.Context, req LabelRequest) (string, error)
	// Release says that the pod has the volume mounted no more. It does not block.
	Release(uid, volumeName string)
}

// LabelRequest is one volume of a pod.
type LabelRequest struct {
	Pod *corev1.Pod
	// Plugin is the name of the plugin that mounts it.
	Plugin string
	Source
}

// label is the volume's label; empty without one, or where nobody says.
func (m *Manager) label(ctx context.Context, pod *corev1.Pod, s Source, plugin Plugin) (string, error) {
	if m.labels == nil || s.Block() {
		return "", nil
	}
	label, err := m.labels.Label(ctx, LabelRequest{Pod: pod, Plugin: plugin.Name(), Source: s})
	if err != nil {
		return "", fmt.Errorf("SELinux label: %w", err)
	}
	return label, nil
}

// labeled says whether a volume that is mounted has a label of its own. That of
// a claim is in its record.
func (m *Manager) labeled(ctx context.Context, pod *corev1.Pod, s Source, plugin Plugin) (bool, error) {
	if namesClaim(s.Volume) || s.Driver() == "" {
		return s.SELinuxLabel != "", nil
	}
	label, err := m.label(ctx, pod, s, plugin)
	return label != "", err
}

// unlabel forgets the label of a volume that is not mounted any more.
func (m *Manager) unlabel(uid, volumeName string) {
	if m.labels != nil {
		m.labels.Release(uid, volumeName)
	}
}
