package plugins

import (
	"context"

	"nodekit.dev/volume"
)

// configMapPlugin gives configMap volumes: files on the disk, as the stock
// kubelet's.
type configMapPlugin struct{ Sources }

func (configMapPlugin) Name() string { return "kubernetes.io/configmap" }

func (configMapPlugin) Supports(s volume.Source) bool { return s.Volume.ConfigMap != nil }

func (p configMapPlugin) Mount(ctx context.Context, req volume.MountRequest) (volume.MountResult, error) {
	return p.disk().mount(req, func() (collected, error) {
		source := req.Volume.ConfigMap
		files, err := p.configMapFiles(ctx, req.Pod, source.Name, keyed{
			items: source.Items, mode: source.DefaultMode, user: p.user(source.DefaultUser), optional: isTrue(source.Optional),
		})
		return collected{files: files}, err
	})
}

func (p configMapPlugin) Mounted(_ context.Context, req volume.MountedRequest) (volume.MountedResult, error) {
	return p.disk().mounted(req)
}

func (p configMapPlugin) Unmount(ctx context.Context, req volume.UnmountRequest) error {
	return p.disk().unmount(ctx, req)
}
