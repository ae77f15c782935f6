package volume

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/reasoned"
)

// ContainerDevice is one block device that a container gets.
type ContainerDevice struct {
	HostPath      string // of the device itself, no link
	ContainerPath string // absolute
	ReadOnly      bool
}

// ContainerDevicesRequest names a container of a pod whose volumes are mounted.
type ContainerDevicesRequest struct {
	Pod       *corev1.Pod
	Container string // main, init or ephemeral
}

// ContainerDevices resolves the volumeDevices of a container to devices of the
// host, in their order. It changes nothing. Errors have the reason
// CreateContainerConfigError.
func (m *Manager) ContainerDevices(ctx context.Context, req ContainerDevicesRequest) ([]ContainerDevice, error) {
	c, ok := container(req.Pod, req.Container)
	if !ok {
		return nil, reasoned.New(reasonConfig, fmt.Errorf("the pod has no container %q", req.Container)).Final()
	}
	var devices []ContainerDevice
	for _, d := range c.VolumeDevices {
		device, err := m.containerDevice(ctx, req, d)
		if err != nil {
			return nil, classed(reasonConfig, err)
		}
		devices = append(devices, device)
	}
	return devices, nil
}

func (m *Manager) containerDevice(ctx context.Context, req ContainerDevicesRequest, d corev1.VolumeDevice) (ContainerDevice, error) {
	if !filepath.IsAbs(d.DevicePath) {
		return ContainerDevice{}, fmt.Errorf("error DevicePath `%s` must be an absolute path", d.DevicePath)
	}
	fail := func(err error) (ContainerDevice, error) {
		return ContainerDevice{}, fmt.Errorf("cannot find volume %q to pass into container %q: %w", d.Name, req.Container, err)
	}
	s, plugin, err := m.known(req.Pod, d.Name)
	if err != nil {
		return fail(err)
	}
	if !s.Block() {
		return ContainerDevice{}, reasoned.New(reasonConfig, fmt.Errorf("volume %s has volumeMode Filesystem, but is specified in volumeDevices", d.Name)).Final()
	}
	where, err := plugin.Mounted(ctx, m.mountedRequest(string(req.Pod.UID), s, plugin))
	if err == nil && !where.Mounted {
		err = errNotMounted
	}
	if err != nil {
		return fail(err)
	}
	path, err := blockDevice(where.HostPath)
	if err != nil {
		return fail(err)
	}
	return ContainerDevice{HostPath: path, ContainerPath: d.DevicePath, ReadOnly: s.ReadOnly || where.ReadOnly}, nil
}

// blockDevice follows links to a block device.
func blockDevice(path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Mode()&os.ModeDevice == 0 || info.Mode()&os.ModeCharDevice != 0 {
		return "", fmt.Errorf("%s is not a block device", path)
	}
	return path, nil
}
