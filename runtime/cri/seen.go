package cri

import (
	"cmp"
	"slices"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

// listedSandbox is what a list tells of a sandbox.
func listedSandbox(s *runtimeapi.PodSandbox) runtime.Sandbox {
	return runtime.Sandbox{
		ID:             s.Id,
		Attempt:        s.GetMetadata().GetAttempt(),
		Ready:          s.State == runtimeapi.PodSandboxState_SANDBOX_READY,
		CreatedAt:      nanoTime(s.CreatedAt),
		RuntimeHandler: s.RuntimeHandler,
		Labels:         s.Labels,
		Annotations:    s.Annotations,
	}
}

// seenSandbox is what the status tells of a sandbox.
func seenSandbox(s *runtimeapi.PodSandboxStatus) runtime.Sandbox {
	host := s.GetLinux().GetNamespaces().GetOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE
	ips := sandboxIPs(s.GetNetwork())
	return runtime.Sandbox{
		ID:             s.GetId(),
		Attempt:        s.GetMetadata().GetAttempt(),
		Ready:          s.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY,
		CreatedAt:      nanoTime(s.GetCreatedAt()),
		IPs:            ips,
		NoAddress:      s.GetNetwork() != nil && len(ips) == 0 && !host,
		HostNetwork:    host,
		RuntimeHandler: s.GetRuntimeHandler(),
		Labels:         s.GetLabels(),
		Annotations:    s.GetAnnotations(),
	}
}

func sandboxIPs(n *runtimeapi.PodSandboxNetworkStatus) []string {
	var ips []string
	if n.GetIp() != "" {
		ips = append(ips, n.GetIp())
	}
	for _, more := range n.GetAdditionalIps() {
		if more.GetIp() != "" {
			ips = append(ips, more.GetIp())
		}
	}
	return ips
}

// listedContainer is what a list tells of a container.
func listedContainer(c *runtimeapi.Container) runtime.Container {
	return runtime.Container{
		ID:          c.Id,
		SandboxID:   c.PodSandboxId,
		Name:        c.GetMetadata().GetName(),
		Attempt:     c.GetMetadata().GetAttempt(),
		State:       containerState(c.State),
		CreatedAt:   nanoTime(c.CreatedAt),
		Image:       c.GetImage().GetImage(),
		ImageID:     cmp.Or(c.ImageRef, c.ImageId),
		Labels:      c.Labels,
		Annotations: c.Annotations,
	}
}

// seenContainer is what the status tells of a container. The status does not
// say which sandbox it is in; the list does.
func seenContainer(s *runtimeapi.ContainerStatus, sandboxID string) runtime.Container {
	return runtime.Container{
		ID:          s.GetId(),
		SandboxID:   sandboxID,
		Name:        s.GetMetadata().GetName(),
		Attempt:     s.GetMetadata().GetAttempt(),
		State:       containerState(s.GetState()),
		CreatedAt:   nanoTime(s.GetCreatedAt()),
		StartedAt:   nanoTime(s.GetStartedAt()),
		FinishedAt:  nanoTime(s.GetFinishedAt()),
		ExitCode:    s.GetExitCode(),
		Reason:      s.GetReason(),
		Message:     s.GetMessage(),
		Image:       cmp.Or(s.GetImage().GetUserSpecifiedImage(), s.GetImage().GetImage()),
		ImageID:     cmp.Or(s.GetImageRef(), s.GetImageId()),
		LogPath:     s.GetLogPath(),
		Labels:      s.GetLabels(),
		Annotations: s.GetAnnotations(),

		User:              seenUser(s.GetUser()),
		RecursiveReadOnly: readOnlyBelow(s.GetMounts()),
		StopSignal:        signalName(s.GetStopSignal()),
	}
}

// signalName is the inverse of stopSignal.
func signalName(s runtimeapi.Signal) string {
	name, known := strings.CutPrefix(runtimeapi.Signal_name[int32(s)], "SIGNAL_")
	if !known || s == runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT {
		return ""
	}
	return strings.NewReplacer("SIGRTMINPLUS", "SIGRTMIN+", "SIGRTMAXMINUS", "SIGRTMAX-").Replace(name)
}

func seenUser(u *runtimeapi.ContainerUser) *runtime.ContainerUser {
	linux := u.GetLinux()
	if linux == nil {
		return nil
	}
	return &runtime.ContainerUser{UID: linux.GetUid(), GID: linux.GetGid(), SupplementalGroups: linux.GetSupplementalGroups()}
}

func readOnlyBelow(mounts []*runtimeapi.Mount) []string {
	var paths []string
	for _, m := range mounts {
		if m.GetRecursiveReadOnly() {
			paths = append(paths, m.GetContainerPath())
		}
	}
	return paths
}

func containerState(s runtimeapi.ContainerState) runtime.ContainerState {
	switch s {
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		return runtime.ContainerCreated
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		return runtime.ContainerRunning
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		return runtime.ContainerExited
	}
	return runtime.ContainerUnknown
}

// nanoTime reads the CRI's times; 0 is a time that has not come.
func nanoTime(ns int64) time.Time {
	if ns <= 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// sortPod puts what a pod has in the order that runtime.Pod promises. Attempts
// count before times, because the clock of a node may jump.
func sortPod(p *runtime.Pod) {
	slices.SortFunc(p.Sandboxes, func(a, b runtime.Sandbox) int {
		return cmp.Or(cmp.Compare(b.Attempt, a.Attempt), b.CreatedAt.Compare(a.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	slices.SortFunc(p.Containers, func(a, b runtime.Container) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(b.Attempt, a.Attempt),
			b.CreatedAt.Compare(a.CreatedAt), strings.Compare(a.ID, b.ID))
	})
}
