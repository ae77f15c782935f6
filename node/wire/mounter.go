package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/node"
	"nodekit.dev/node/podactor"
	"nodekit.dev/node/podspec"
	"nodekit.dev/runtime"
	"nodekit.dev/volume"
)

// Mounter mounts volumes through m. It also writes the /etc/hosts of a pod just
// before a container mounts it, where the builder says that the pod has one.
func Mounter(m *volume.Manager, specs *podspec.Builder) node.Mounter {
	return mounter{m, specs}
}

type mounter struct {
	volumes *volume.Manager
	specs   *podspec.Builder
}

func (m mounter) Mount(ctx context.Context, req podactor.MountRequest) (podactor.MountResult, error) {
	path, err := m.volumes.Mount(ctx, req.Pod, req.Volume)
	return podactor.MountResult{HostPath: path}, err
}

func (m mounter) Unmount(ctx context.Context, req podactor.UnmountRequest) error {
	return m.volumes.Unmount(ctx, req.UID, req.Volume)
}

func (m mounter) Mounted(ctx context.Context, uid string) ([]string, error) {
	return m.volumes.Mounted(ctx, uid)
}

func (m mounter) RemovePodDir(ctx context.Context, uid string) error {
	return m.volumes.RemovePodDir(ctx, uid)
}

func (m mounter) ContainerMounts(ctx context.Context, req podactor.ContainerMountsRequest) (podactor.ContainerMountsResult, error) {
	if err := m.writeHosts(req); err != nil {
		return podactor.ContainerMountsResult{}, reasoned.New("CreateContainerConfigError", err)
	}
	devices, err := m.devices(ctx, req)
	if err != nil {
		return podactor.ContainerMountsResult{}, err
	}
	mounts, err := m.volumes.ContainerMounts(ctx, volume.ContainerMountsRequest{
		Pod: req.Pod, Container: req.Container,
		Expand:            func(expr string) (string, error) { return m.specs.ExpandSubPath(req, expr) },
		RecursiveReadOnly: m.specs.RecursiveReadOnly(req.RuntimeHandler),
	})
	out := make([]runtime.Mount, 0, len(mounts))
	for _, mount := range mounts {
		out = append(out, runtime.Mount{
			HostPath: mount.HostPath, Image: image(mount, req.RuntimeHandler), ImageSubPath: mount.ImageSubPath,
			ContainerPath: mount.ContainerPath,
			ReadOnly:      mount.ReadOnly, RecursiveReadOnly: mount.RecursiveReadOnly,
			Propagation: runtime.Propagation(mount.Propagation), SELinuxRelabel: mount.SELinuxRelabel,
		})
	}
	return podactor.ContainerMountsResult{Mounts: out, Devices: devices}, err
}

func image(m volume.ContainerMount, handler string) runtime.Image {
	if m.Image == "" {
		return runtime.Image{}
	}
	return runtime.Image{Ref: m.Image, Requested: m.ImageName, RuntimeHandler: handler}
}

func (m mounter) devices(ctx context.Context, req podactor.ContainerMountsRequest) ([]runtime.Device, error) {
	devices, err := m.volumes.ContainerDevices(ctx, volume.ContainerDevicesRequest{Pod: req.Pod, Container: req.Container})
	var out []runtime.Device
	for _, d := range devices {
		permissions := "mrw"
		if d.ReadOnly {
			permissions = "r"
		}
		out = append(out, runtime.Device{HostPath: d.HostPath, ContainerPath: d.ContainerPath, Permissions: permissions})
	}
	return out, err
}

// writeHosts makes the pod's hosts file say what it should.
func (m mounter) writeHosts(req podactor.ContainerMountsRequest) error {
	path, content, ok, err := m.specs.HostsFile(req.Pod, req.PodIPs)
	if err != nil || !ok {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("hosts file: %w", err)
	}
	if err := writeInPlace(path, content); err != nil {
		return fmt.Errorf("hosts file: %w", err)
	}
	return nil
}

// writeInPlace writes a file whose content differs. Containers that run have it
// mounted, and a new file under the same name would not reach them. The old
// content is overwritten, never cut off first: with no space left, a container
// would be left without any names.
func writeInPlace(path string, content []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // every user of the container reads it
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Truncate(int64(len(content)))
	}
	return errors.Join(err, file.Close())
}
