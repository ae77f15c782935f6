package plugins

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/downward"
	"nodekit.dev/volume"
)

// downwardPlugin gives downwardAPI volumes: files in memory.
type downwardPlugin struct{ Sources }

func (downwardPlugin) Name() string { return "kubernetes.io/downward-api" }

func (downwardPlugin) Supports(s volume.Source) bool { return s.Volume.DownwardAPI != nil }

func (p downwardPlugin) Mount(_ context.Context, req volume.MountRequest) (volume.MountResult, error) {
	return p.inMemory().mount(req, func() (collected, error) {
		source := req.Volume.DownwardAPI
		files, err := p.downwardFiles(req.Pod, source.Items, source.DefaultMode, p.user(source.DefaultUser))
		return collected{files: files}, err
	})
}

func (p downwardPlugin) Mounted(_ context.Context, req volume.MountedRequest) (volume.MountedResult, error) {
	return p.inMemory().mounted(req)
}

func (p downwardPlugin) Unmount(ctx context.Context, req volume.UnmountRequest) error {
	return p.inMemory().unmount(ctx, req)
}

// downwardFiles reads fields of the pod into files.
func (s Sources) downwardFiles(pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile, mode *int32, user func(*int64) *int64) (payload, error) {
	out := payload{}
	var errs []error
	for _, item := range items {
		text, err := s.downwardText(pod, item)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out[item.Path] = file{data: []byte(text), mode: modeOr(item.Mode, modeOr(mode, defaultMode)), user: user(item.User)}
	}
	return out, joined(errs)
}

func (s Sources) downwardText(pod *corev1.Pod, item corev1.DownwardAPIVolumeFile) (string, error) {
	switch {
	case item.FieldRef != nil:
		return downward.Field(pod, item.FieldRef.FieldPath)
	case item.ResourceFieldRef != nil:
		container, err := downward.Container(pod, item.ResourceFieldRef.ContainerName)
		if err != nil {
			return "", err
		}
		return downward.Resource(container, item.ResourceFieldRef, s.allocatable())
	}
	return "", nil
}
