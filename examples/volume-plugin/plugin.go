package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"nodekit.dev/volume"
)

// scratch keeps nothing in memory: what is mounted is what the host says.
type scratch struct{}

// driver is what the flexVolume volumes of pods name.
const driver = "example.com/scratch"

func (scratch) Name() string { return driver }

func (scratch) Supports(s volume.Source) bool {
	return s.Volume.FlexVolume != nil && s.Volume.FlexVolume.Driver == driver
}

// Mount is called again after a crash, and for what is mounted already.
func (p scratch) Mount(ctx context.Context, req volume.MountRequest) (volume.MountResult, error) {
	result := volume.MountResult{HostPath: req.Dir, SetOwner: true}
	at, err := p.Mounted(ctx, volume.MountedRequest{Dir: req.Dir})
	if at.Mounted || err != nil {
		return result, err
	}
	if err := os.MkdirAll(req.Dir, 0o750); err != nil {
		return result, err
	}
	size := cmp.Or(req.Volume.FlexVolume.Options["size"], "16m")
	if err := unix.Mount("scratch", req.Dir, "tmpfs", unix.MS_NODEV|unix.MS_NOSUID, "size="+size); err != nil {
		return result, fmt.Errorf("scratch volume of size %q: %w", size, err)
	}
	return result, nil
}

func (scratch) Mounted(_ context.Context, req volume.MountedRequest) (volume.MountedResult, error) {
	points, err := volume.HostMounter{}.MountPoints(req.Dir)
	mounted := len(points) > 0 && points[len(points)-1] == req.Dir // deepest first
	return volume.MountedResult{Mounted: mounted, HostPath: req.Dir}, err
}

// Unmount knows no more than where the volume was.
func (scratch) Unmount(ctx context.Context, req volume.UnmountRequest) error {
	for _, point := range req.Mounts {
		if point != req.Dir {
			return fmt.Errorf("%s is mounted in the volume, and not ours", point)
		}
		if err := unix.Unmount(point, unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("unmount %s: %w", point, err)
		}
	}
	return volume.RemoveDir(ctx, req.Dir) // never through a mount
}
