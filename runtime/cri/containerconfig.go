package cri

import (
	"fmt"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

// containerConfig says in the CRI's messages what a container should be.
func containerConfig(cfg runtime.ContainerConfig) (*runtimeapi.ContainerConfig, error) {
	security, err := containerSecurity(cfg.Security)
	if err != nil {
		return nil, err
	}
	mounts, err := mounts(cfg.Mounts, cfg.Security.Namespaces.User)
	if err != nil {
		return nil, err
	}
	signal, err := stopSignal(cfg.StopSignal)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: cfg.Name, Attempt: cfg.Attempt},
		Image: &runtimeapi.ImageSpec{
			Image: cfg.Image.Ref, UserSpecifiedImage: cfg.Image.Requested, RuntimeHandler: cfg.Image.RuntimeHandler,
		},
		Command:     cfg.Command,
		Args:        cfg.Args,
		WorkingDir:  cfg.WorkingDir,
		Envs:        environment(cfg.Env),
		Mounts:      mounts,
		Devices:     devices(cfg.Devices),
		Labels:      cfg.Labels,
		Annotations: cfg.Annotations,
		LogPath:     cfg.LogPath,
		Stdin:       cfg.Stdin,
		StdinOnce:   cfg.StdinOnce,
		Tty:         cfg.TTY,
		Linux: &runtimeapi.LinuxContainerConfig{
			Resources: resources(cfg.Resources), SecurityContext: security,
		},
		StopSignal: signal,
	}, nil
}

func environment(in []runtime.EnvVar) []*runtimeapi.KeyValue {
	var out []*runtimeapi.KeyValue
	for _, e := range in {
		out = append(out, &runtimeapi.KeyValue{Key: e.Name, Value: []byte(e.Value)})
	}
	return out
}

func devices(in []runtime.Device) []*runtimeapi.Device {
	var out []*runtimeapi.Device
	for _, d := range in {
		out = append(out, &runtimeapi.Device{HostPath: d.HostPath, ContainerPath: d.ContainerPath, Permissions: d.Permissions})
	}
	return out
}

// mounts also maps the owners of files where the pod has a user namespace of
// its own: a volume shows the same owners with and without.
func mounts(in []runtime.Mount, user *runtime.UserNamespace) ([]*runtimeapi.Mount, error) {
	mapped := userNamespace(user)
	var out []*runtimeapi.Mount
	for _, m := range in {
		propagation, err := propagationMode(m.Propagation)
		if err != nil {
			return nil, fmt.Errorf("mount %s: %w", m.ContainerPath, err)
		}
		if m.RecursiveReadOnly && (!m.ReadOnly || propagation != runtimeapi.MountPropagation_PROPAGATION_PRIVATE) {
			return nil, fmt.Errorf("mount %s: recursively read-only needs read-only and private propagation", m.ContainerPath)
		}
		out = append(out, &runtimeapi.Mount{
			HostPath:          m.HostPath,
			Image:             mountedImage(m.Image),
			ImageSubPath:      m.ImageSubPath,
			ContainerPath:     m.ContainerPath,
			Readonly:          m.ReadOnly,
			RecursiveReadOnly: m.RecursiveReadOnly,
			SelinuxRelabel:    m.SELinuxRelabel,
			Propagation:       propagation,
			UidMappings:       mapped.GetUids(),
			GidMappings:       mapped.GetGids(),
		})
	}
	return out, nil
}

func mountedImage(i runtime.Image) *runtimeapi.ImageSpec {
	if i.Ref == "" {
		return nil
	}
	return &runtimeapi.ImageSpec{Image: i.Ref, UserSpecifiedImage: i.Requested, RuntimeHandler: i.RuntimeHandler}
}

func propagationMode(p runtime.Propagation) (runtimeapi.MountPropagation, error) {
	switch p {
	case "", runtime.PropagationPrivate:
		return runtimeapi.MountPropagation_PROPAGATION_PRIVATE, nil
	case runtime.PropagationHostToContainer:
		return runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER, nil
	case runtime.PropagationBidirectional:
		return runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL, nil
	}
	return 0, fmt.Errorf("propagation %q is not known", p)
}

// stopSignal reads names such as "SIGTERM" and "SIGRTMIN+3".
func stopSignal(name string) (runtimeapi.Signal, error) {
	if name == "" {
		return runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT, nil
	}
	spelled := strings.NewReplacer("SIGRTMIN+", "SIGRTMINPLUS", "SIGRTMAX-", "SIGRTMAXMINUS").Replace(name)
	signal, ok := runtimeapi.Signal_value["SIGNAL_"+spelled]
	if !ok || !strings.HasPrefix(name, "SIG") {
		return 0, fmt.Errorf("stop signal %q is not known", name)
	}
	return runtimeapi.Signal(signal), nil
}
