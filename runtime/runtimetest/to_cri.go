package runtimetest

import (
	"time"

	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

func statusToCRI(s runtime.Status) *criv1.StatusResponse {
	resp := &criv1.StatusResponse{Status: &criv1.RuntimeStatus{Conditions: []*criv1.RuntimeCondition{
		conditionToCRI(criv1.RuntimeReady, s.Runtime), conditionToCRI(criv1.NetworkReady, s.Network),
	}}}
	for _, h := range s.Handlers {
		resp.RuntimeHandlers = append(resp.RuntimeHandlers, &criv1.RuntimeHandler{Name: h.Name, Features: &criv1.RuntimeHandlerFeatures{
			RecursiveReadOnlyMounts: h.RecursiveReadOnlyMounts, UserNamespaces: h.UserNamespaces,
		}})
	}
	if f := s.Features; f != nil {
		resp.Features = &criv1.RuntimeFeatures{
			SupplementalGroupsPolicy: f.SupplementalGroupsPolicy, UserNamespacesHostNetwork: f.UserNamespacesHostNetwork, MountOptions: f.MountOptions,
		}
	}
	return resp
}

func conditionToCRI(kind string, c runtime.Condition) *criv1.RuntimeCondition {
	return &criv1.RuntimeCondition{Type: kind, Status: c.Ready, Reason: c.Reason, Message: c.Message}
}

func sandboxStateToCRI(ready bool) criv1.PodSandboxState {
	if ready {
		return criv1.PodSandboxState_SANDBOX_READY
	}
	return criv1.PodSandboxState_SANDBOX_NOTREADY
}

func sandboxMetadata(cfg runtime.SandboxConfig) *criv1.PodSandboxMetadata {
	return &criv1.PodSandboxMetadata{Name: cfg.Name, Namespace: cfg.Namespace, Uid: cfg.UID, Attempt: cfg.Attempt}
}

func sandboxToCRI(s runtime.Sandbox, cfg runtime.SandboxConfig) *criv1.PodSandbox {
	return &criv1.PodSandbox{
		Id:             s.ID,
		Metadata:       sandboxMetadata(cfg),
		State:          sandboxStateToCRI(s.Ready),
		CreatedAt:      nanos(s.CreatedAt),
		Labels:         s.Labels,
		Annotations:    s.Annotations,
		RuntimeHandler: s.RuntimeHandler,
	}
}

func sandboxStatusToCRI(s runtime.Sandbox, cfg runtime.SandboxConfig) *criv1.PodSandboxStatus {
	n := cfg.Security.Namespaces
	out := &criv1.PodSandboxStatus{
		Id:        s.ID,
		Metadata:  sandboxMetadata(cfg),
		State:     sandboxStateToCRI(s.Ready),
		CreatedAt: nanos(s.CreatedAt),
		Network:   &criv1.PodSandboxNetworkStatus{},
		Linux: &criv1.LinuxPodSandboxStatus{Namespaces: &criv1.Namespace{Options: &criv1.NamespaceOption{
			Network: modeToCRI(n.Network), Pid: modeToCRI(n.PID), Ipc: modeToCRI(n.IPC), TargetId: n.TargetID,
		}}},
		Labels:         s.Labels,
		Annotations:    s.Annotations,
		RuntimeHandler: s.RuntimeHandler,
	}
	for i, ip := range s.IPs {
		if i == 0 {
			out.Network.Ip = ip
		} else {
			out.Network.AdditionalIps = append(out.Network.AdditionalIps, &criv1.PodIP{Ip: ip})
		}
	}
	return out
}

func modeToCRI(m runtime.NamespaceMode) criv1.NamespaceMode {
	switch m {
	case runtime.NamespaceContainer:
		return criv1.NamespaceMode_CONTAINER
	case runtime.NamespaceNode:
		return criv1.NamespaceMode_NODE
	case runtime.NamespaceTarget:
		return criv1.NamespaceMode_TARGET
	case runtime.NamespacePod:
	}
	return criv1.NamespaceMode_POD
}

func containerStateToCRI(s runtime.ContainerState) criv1.ContainerState {
	switch s {
	case runtime.ContainerCreated:
		return criv1.ContainerState_CONTAINER_CREATED
	case runtime.ContainerRunning:
		return criv1.ContainerState_CONTAINER_RUNNING
	case runtime.ContainerExited:
		return criv1.ContainerState_CONTAINER_EXITED
	case runtime.ContainerUnknown:
	}
	return criv1.ContainerState_CONTAINER_UNKNOWN
}

func containerToCRI(c runtime.Container) *criv1.Container {
	return &criv1.Container{
		Id:           c.ID,
		PodSandboxId: c.SandboxID,
		Metadata:     &criv1.ContainerMetadata{Name: c.Name, Attempt: c.Attempt},
		Image:        &criv1.ImageSpec{Image: c.Image, UserSpecifiedImage: c.Image},
		ImageRef:     c.ImageID,
		ImageId:      c.ImageID,
		State:        containerStateToCRI(c.State),
		CreatedAt:    nanos(c.CreatedAt),
		Labels:       c.Labels,
		Annotations:  c.Annotations,
	}
}

// containerStatusToCRI takes the message from the runtime's own words: what a
// process wrote to its termination log is in a file, for the agent to read.
func containerStatusToCRI(c runtime.Container, own *container) *criv1.ContainerStatus {
	out := eventStatusToCRI(c)
	out.Message = own.end.message
	out.StopSignal = criv1.Signal(criv1.Signal_value["SIGNAL_"+own.cfg.StopSignal])
	for _, m := range own.cfg.Mounts {
		out.Mounts = append(out.Mounts, &criv1.Mount{
			HostPath: m.HostPath, ContainerPath: m.ContainerPath, Readonly: m.ReadOnly,
			RecursiveReadOnly: m.RecursiveReadOnly, SelinuxRelabel: m.SELinuxRelabel,
		})
	}
	r := own.cfg.Resources
	out.Resources = &criv1.ContainerResources{Linux: &criv1.LinuxContainerResources{
		CpuPeriod: r.CPUPeriod, CpuQuota: r.CPUQuota, CpuShares: r.CPUShares,
		MemoryLimitInBytes: r.Memory, MemorySwapLimitInBytes: r.MemorySwap, OomScoreAdj: r.OOMScoreAdj,
		CpusetCpus: r.CpusetCPUs, CpusetMems: r.CpusetMems, Unified: r.Unified,
	}}
	return out
}

func eventStatusToCRI(c runtime.Container) *criv1.ContainerStatus {
	return &criv1.ContainerStatus{
		Id:          c.ID,
		Metadata:    &criv1.ContainerMetadata{Name: c.Name, Attempt: c.Attempt},
		State:       containerStateToCRI(c.State),
		CreatedAt:   nanos(c.CreatedAt),
		StartedAt:   nanos(c.StartedAt),
		FinishedAt:  nanos(c.FinishedAt),
		ExitCode:    c.ExitCode,
		Image:       &criv1.ImageSpec{Image: c.Image, UserSpecifiedImage: c.Image},
		ImageRef:    c.ImageID,
		ImageId:     c.ImageID,
		Reason:      c.Reason,
		Labels:      c.Labels,
		Annotations: c.Annotations,
		LogPath:     c.LogPath,
	}
}

func eventToCRI(e Event) *criv1.ContainerEventResponse {
	out := &criv1.ContainerEventResponse{
		ContainerId:        e.ID,
		ContainerEventType: eventTypeToCRI(e.Type),
		CreatedAt:          nanos(e.At),
	}
	for _, s := range e.Pod.Sandboxes {
		out.PodSandboxStatus = sandboxStatusToCRI(s, e.sandbox)
	}
	for _, c := range e.Pod.Containers {
		out.ContainersStatuses = append(out.ContainersStatuses, eventStatusToCRI(c))
	}
	return out
}

func eventTypeToCRI(t EventType) criv1.ContainerEventType {
	switch t {
	case EventStarted:
		return criv1.ContainerEventType_CONTAINER_STARTED_EVENT
	case EventStopped:
		return criv1.ContainerEventType_CONTAINER_STOPPED_EVENT
	case EventDeleted:
		return criv1.ContainerEventType_CONTAINER_DELETED_EVENT
	case EventCreated:
	}
	return criv1.ContainerEventType_CONTAINER_CREATED_EVENT
}

func imageToCRI(i runtime.ImageInfo) *criv1.Image {
	out := &criv1.Image{Id: i.ID, RepoTags: i.RepoTags, RepoDigests: i.RepoDigests, Size: i.Size, Username: i.User, Pinned: i.Pinned}
	if i.UID != nil {
		out.Uid = &criv1.Int64Value{Value: *i.UID}
	}
	return out
}

// nanos is 0 for what did not happen yet.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
