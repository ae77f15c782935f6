package plugins

import (
	"context"

	"nodekit.dev/volume"
)

// secretPlugin gives secret volumes: files in memory.
type secretPlugin struct{ Sources }

func (secretPlugin) Name() string { return "kubernetes.io/secret" }

func (secretPlugin) Supports(s volume.Source) bool { return s.Volume.Secret != nil }

func (p secretPlugin) Mount(ctx context.Context, req volume.MountRequest) (volume.MountResult, error) {
	return p.inMemory().mount(req, func() (collected, error) {
		source := req.Volume.Secret
		files, err := p.secretFiles(ctx, req.Pod, source.SecretName, keyed{
			items: source.Items, mode: source.DefaultMode, user: p.user(source.DefaultUser), optional: isTrue(source.Optional),
		})
		return collected{files: files}, err
	})
}

func (p secretPlugin) Mounted(_ context.Context, req volume.MountedRequest) (volume.MountedResult, error) {
	return p.inMemory().mounted(req)
}

func (p secretPlugin) Unmount(ctx context.Context, req volume.UnmountRequest) error {
	return p.inMemory().unmount(ctx, req)
}
