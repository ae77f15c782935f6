package volume

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/reasoned"
)

// ContainerMount is one bind mount into a container.
type ContainerMount struct {
	HostPath string
	// Image is mounted instead of HostPath by who starts the container: what the
	// runtime knows it by, what the pod calls it, and the path in it.
	Image, ImageName, ImageSubPath string

	ContainerPath     string // absolute
	ReadOnly          bool
	RecursiveReadOnly bool
	// Propagation in the CRI's words: "private", "hostToContainer" or "bidirectional".
	Propagation string
	// SELinuxRelabel asks the runtime to give the files the container's label, where
	// the host has SELinux.
	SELinuxRelabel bool
}

// ContainerMountsRequest names a container of a pod whose volumes are mounted.
type ContainerMountsRequest struct {
	Pod       *corev1.Pod
	Container string // main, init or ephemeral
	// Expand resolves the $(NAME) references of a subPathExpr with the
	// container's environment. Needed only by containers that have one.
	Expand func(expr string) (string, error)
	// RecursiveReadOnly says that the runtime can make mounts recursively
	// read-only.
	RecursiveReadOnly bool
}

// ContainerMounts resolves the volumeMounts of a container to host paths, in
// their order. subPaths are opened below their volume, so that no symlink
// leads out, made where they are missing, and bind-mounted under
// volume-subpaths, where nobody can exchange them. Idempotent. Errors have the
// reason CreateContainerConfigError.
func (m *Manager) ContainerMounts(ctx context.Context, req ContainerMountsRequest) ([]ContainerMount, error) {
	c, ok := container(req.Pod, req.Container)
	mounts := c.VolumeMounts
	if !ok {
		return nil, reasoned.New(reasonConfig, fmt.Errorf("the pod has no container %q", req.Container)).Final()
	}
	result := make([]ContainerMount, 0, len(mounts))
	for i, vm := range mounts {
		mount, err := m.containerMount(ctx, req, vm, i)
		if err != nil {
			return nil, classed(reasonConfig, fmt.Errorf("volumeMount %q of container %q: %w", vm.Name, req.Container, err))
		}
		result = append(result, mount)
	}
	return result, nil
}

func (m *Manager) containerMount(ctx context.Context, req ContainerMountsRequest, vm corev1.VolumeMount, index int) (ContainerMount, error) {
	where, relabel, err := m.locate(ctx, req, vm.Name)
	if err != nil {
		return ContainerMount{}, err
	}
	recursive, err := recursiveReadOnly(vm, req.RecursiveReadOnly)
	if err != nil {
		return ContainerMount{}, err
	}
	propagation, err := propagation(vm.MountPropagation)
	if err != nil {
		return ContainerMount{}, err
	}
	subPath, err := resolveSubPath(vm, req.Expand)
	if err != nil {
		return ContainerMount{}, err
	}
	if where.Image != "" {
		s, _, err := m.known(req.Pod, vm.Name)
		if err != nil || s.Volume.Image == nil {
			return ContainerMount{}, errors.Join(err, errNotMounted)
		}
		return ContainerMount{
			Image: where.Image, ImageName: s.Volume.Image.Reference, ImageSubPath: subPath,
			ContainerPath: filepath.Join("/", vm.MountPath), ReadOnly: true, Propagation: propagation,
		}, nil
	}
	path := where.HostPath
	if subPath != "" {
		target := m.layout.subPath(string(req.Pod.UID), vm.Name, req.Container, index)
		if path, err = m.prepareSubPath(ctx, where.HostPath, subPath, target); err != nil {
			return ContainerMount{}, fmt.Errorf("subPath %q: %w", subPath, err)
		}
	}
	return ContainerMount{
		HostPath:          path,
		ContainerPath:     filepath.Join("/", vm.MountPath),
		ReadOnly:          vm.ReadOnly || where.ReadOnly,
		RecursiveReadOnly: recursive,
		Propagation:       propagation,
		SELinuxRelabel:    relabel,
	}, nil
}

// locate says where a volume of the pod is, which must be mounted, and whether
// its files want the container's label.
func (m *Manager) locate(ctx context.Context, req ContainerMountsRequest, name string) (where MountedResult, relabel bool, err error) {
	s, plugin, err := m.known(req.Pod, name)
	if err != nil {
		return MountedResult{}, false, fmt.Errorf("cannot find volume %q to mount into container %q: %w", name, req.Container, err)
	}
	if err := checkName("container", req.Container); err != nil {
		return MountedResult{}, false, err
	}
	if s.Block() {
		return MountedResult{}, false, reasoned.New(reasonConfig, fmt.Errorf("volume %s has volumeMode Block, but is specified in volumeMounts", name)).Final()
	}
	where, err = plugin.Mounted(ctx, m.mountedRequest(string(req.Pod.UID), s, plugin))
	if err == nil && (!where.Mounted || m.owing(string(req.Pod.UID), name)) {
		err = errNotMounted
	}
	if err == nil && where.Follows {
		err = m.freshen(ctx, req.Pod, s, plugin)
	}
	labeled := false
	if err == nil {
		labeled, err = m.labeled(ctx, req.Pod, s, plugin)
	}
	return where, !labeled && !where.KeepLabels && !s.ReadOnly, err
}

// container finds a container of any kind by name.
func container(pod *corev1.Pod, name string) (corev1.Container, bool) {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name == name {
			return c, true
		}
	}
	for _, c := range pod.Spec.EphemeralContainers {
		if c.Name == name {
			return corev1.Container(c.EphemeralContainerCommon), true
		}
	}
	return corev1.Container{}, false
}

// recursiveReadOnly decides on the field of that name.
func recursiveReadOnly(vm corev1.VolumeMount, supported bool) (bool, error) {
	if vm.RecursiveReadOnly == nil || *vm.RecursiveReadOnly == corev1.RecursiveReadOnlyDisabled {
		return false, nil
	}
	if !vm.ReadOnly {
		return false, fmt.Errorf("recursiveReadOnly %s needs readOnly", *vm.RecursiveReadOnly)
	}
	if p := vm.MountPropagation; p != nil && *p != corev1.MountPropagationNone {
		return false, fmt.Errorf("recursiveReadOnly %s does not go with mountPropagation %s", *vm.RecursiveReadOnly, *p)
	}
	switch *vm.RecursiveReadOnly {
	case corev1.RecursiveReadOnlyIfPossible:
		return supported, nil
	case corev1.RecursiveReadOnlyEnabled:
		if !supported {
			return false, fmt.Errorf("recursiveReadOnly Enabled is not supported by the runtime")
		}
		return true, nil
	}
	return false, fmt.Errorf("recursiveReadOnly %q is none of Disabled, IfPossible, Enabled", *vm.RecursiveReadOnly)
}

// propagation translates the API's word to the CRI's.
func propagation(mode *corev1.MountPropagationMode) (string, error) {
	if mode == nil {
		return "private", nil
	}
	switch *mode {
	case corev1.MountPropagationNone:
		return "private", nil
	case corev1.MountPropagationHostToContainer:
		return "hostToContainer", nil
	case corev1.MountPropagationBidirectional:
		return "bidirectional", nil
	}
	return "", fmt.Errorf("mountPropagation %q is none of None, HostToContainer, Bidirectional", *mode)
}
