package podspec

import (
	"fmt"
	"maps"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/node/podactor"
	"nodekit.dev/resources"
	"nodekit.dev/runtime"
)

// Container is the configuration of one container. Its errors have the reason
// "CreateContainerConfigError", and the words that users see in the container's
// status.
func (b *Builder) Container(req podactor.ContainerSpecRequest) (runtime.ContainerConfig, error) {
	cfg, err := b.container(req)
	if err != nil {
		return runtime.ContainerConfig{}, reasoned.New("CreateContainerConfigError", err)
	}
	return cfg, nil
}

func (b *Builder) container(req podactor.ContainerSpecRequest) (runtime.ContainerConfig, error) {
	pod := req.Pod
	c, err := findContainer(pod, req.Container)
	if err != nil {
		return runtime.ContainerConfig{}, err
	}
	env, err := b.environment(req, c)
	if err != nil {
		return runtime.ContainerConfig{}, err
	}
	if err := b.checkMounts(req, c); err != nil {
		return runtime.ContainerConfig{}, err
	}
	security, err := b.containerSecurity(req, c)
	if err != nil {
		return runtime.ContainerConfig{}, err
	}
	annotations, err := b.containerAnnotations(pod, c, req.Restarts)
	if err != nil {
		return runtime.ContainerConfig{}, err
	}
	return runtime.ContainerConfig{
		Name:        c.Name,
		Attempt:     req.Attempt,
		Image:       runtime.Image{Ref: req.ImageRef, Requested: c.Image, RuntimeHandler: req.RuntimeHandler},
		Command:     expandAll(c.Command, env.lookup),
		Args:        expandAll(c.Args, env.lookup),
		WorkingDir:  c.WorkingDir,
		Env:         env.vars,
		Mounts:      b.mounts(req, c),
		Devices:     req.Devices,
		Labels:      containerLabels(pod, c),
		Annotations: annotations,
		LogPath:     LogPath(c.Name, req.Restarts),
		Stdin:       c.Stdin,
		StdinOnce:   c.StdinOnce,
		TTY:         c.TTY,
		Resources:   b.containerResources(pod, c),
		Security:    security,
		StopSignal:  stopSignal(c),
	}, nil
}

// stopSignal is the container's own; empty: the image's. Check has refused it
// where the gate is off.
func stopSignal(c *corev1.Container) string {
	if c.Lifecycle == nil {
		return ""
	}
	return string(value(c.Lifecycle.StopSignal))
}

// LogPath is where a container's log stands in its pod's LogDirectory.
func LogPath(container string, restarts int32) string {
	return filepath.Join(container, strconv.Itoa(int(restarts))+".log")
}

func (b *Builder) containerResources(pod *corev1.Pod, c *corev1.Container) runtime.Resources {
	out := runtimeResources(resources.ContainerLimits(c, b.cfg.CPUQuota))
	out.OOMScoreAdj = resources.OOMScoreAdj(pod, c, b.cfg.MachineMemory)
	if len(b.cfg.HugepageSizes) > 0 {
		asked := out.HugepageLimits
		out.HugepageLimits = map[string]uint64{}
		for _, size := range b.cfg.HugepageSizes {
			out.HugepageLimits[size] = 0
		}
		maps.Copy(out.HugepageLimits, asked)
	}
	return out
}

// mounts are the volumes, and the files that the agent makes for each container
// unless a volume stands there already.
func (b *Builder) mounts(req podactor.ContainerSpecRequest, c *corev1.Container) []runtime.Mount {
	var out []runtime.Mount
	hostsTaken := false
	recursive := b.features(req.RuntimeHandler).RecursiveReadOnlyMounts
	for _, m := range req.Mounts {
		// The spec's IfPossible: checkMounts has refused those that insist.
		m.RecursiveReadOnly = m.RecursiveReadOnly && recursive
		m.SELinuxRelabel = m.SELinuxRelabel && b.cfg.SELinux
		hostsTaken = hostsTaken || filepath.Clean(m.ContainerPath) == hostsPath
		out = append(out, m)
	}
	if path, ok := b.hostsFile(req.Pod); ok && !hostsTaken {
		out = append(out, b.ownFile(path, hostsPath))
	}
	if req.TerminationLog != "" && c.TerminationMessagePath != "" {
		out = append(out, b.ownFile(req.TerminationLog, c.TerminationMessagePath))
	}
	return out
}

// checkMounts refuses a mount that the runtime can not make as it must be.
func (b *Builder) checkMounts(req podactor.ContainerSpecRequest, c *corev1.Container) error {
	if b.features(req.RuntimeHandler).RecursiveReadOnlyMounts {
		return nil
	}
	for _, m := range c.VolumeMounts {
		if value(m.RecursiveReadOnly) == corev1.RecursiveReadOnlyEnabled {
			return fmt.Errorf("volume %q requested recursive read-only mode, but it is not supported by the runtime", m.Name)
		}
	}
	return nil
}

func (b *Builder) ownFile(host, container string) runtime.Mount {
	return runtime.Mount{
		HostPath: host, ContainerPath: container,
		SELinuxRelabel: b.cfg.SELinux, Propagation: runtime.PropagationPrivate,
	}
}
