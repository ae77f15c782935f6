package runtimetest

import (
	"context"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

// runtimeServer is the RuntimeService of the CRI over a World. It translates;
// the World decides.
type runtimeServer struct {
	criv1.UnimplementedRuntimeServiceServer
	world *World
	api   API
}

func (r *runtimeServer) Version(ctx context.Context, _ *criv1.VersionRequest) (*criv1.VersionResponse, error) {
	err := r.world.do(ctx, call{method: MethodVersion}, func() error { return nil })
	return &criv1.VersionResponse{
		Version: "0.1.0", RuntimeName: runtimeName, RuntimeVersion: runtimeVersion, RuntimeApiVersion: string(r.api),
	}, err
}

func (r *runtimeServer) Status(ctx context.Context, _ *criv1.StatusRequest) (*criv1.StatusResponse, error) {
	s, err := r.world.Status(ctx)
	if err != nil {
		return nil, err
	}
	return statusToCRI(s), nil
}

func (r *runtimeServer) RuntimeConfig(context.Context, *criv1.RuntimeConfigRequest) (*criv1.RuntimeConfigResponse, error) {
	if r.api != APIv1 {
		return nil, status.Error(codes.Unimplemented, "unknown method RuntimeConfig")
	}
	driver := criv1.CgroupDriver_CGROUPFS
	if r.world.cfg.CgroupDriver == "systemd" {
		driver = criv1.CgroupDriver_SYSTEMD
	}
	return &criv1.RuntimeConfigResponse{Linux: &criv1.LinuxRuntimeConfiguration{CgroupDriver: driver}}, nil
}

func (r *runtimeServer) UpdateRuntimeConfig(ctx context.Context, req *criv1.UpdateRuntimeConfigRequest) (*criv1.UpdateRuntimeConfigResponse, error) {
	err := r.world.UpdateRuntimeConfig(ctx, req.GetRuntimeConfig().GetNetworkConfig().GetPodCidr())
	return &criv1.UpdateRuntimeConfigResponse{}, err
}

func (r *runtimeServer) RunPodSandbox(ctx context.Context, req *criv1.RunPodSandboxRequest) (*criv1.RunPodSandboxResponse, error) {
	cfg := sandboxFromCRI(req.GetConfig())
	cfg.RuntimeHandler = req.GetRuntimeHandler()
	r.checkAlpha(cfg, "", sandboxFieldsOfV1(req.GetConfig()))
	id, err := r.world.RunSandbox(ctx, cfg)
	return &criv1.RunPodSandboxResponse{PodSandboxId: id}, err
}

func (r *runtimeServer) StopPodSandbox(ctx context.Context, req *criv1.StopPodSandboxRequest) (*criv1.StopPodSandboxResponse, error) {
	return &criv1.StopPodSandboxResponse{}, r.world.StopSandbox(ctx, req.GetPodSandboxId())
}

func (r *runtimeServer) RemovePodSandbox(ctx context.Context, req *criv1.RemovePodSandboxRequest) (*criv1.RemovePodSandboxResponse, error) {
	return &criv1.RemovePodSandboxResponse{}, r.world.RemoveSandbox(ctx, req.GetPodSandboxId())
}

func (r *runtimeServer) CreateContainer(ctx context.Context, req *criv1.CreateContainerRequest) (*criv1.CreateContainerResponse, error) {
	sandbox, cfg := sandboxFromCRI(req.GetSandboxConfig()), containerFromCRI(req.GetConfig())
	if len(req.GetConfig().GetLinux().GetSecurityContext().GetCapabilities().GetAddAmbientCapabilities()) > 0 {
		r.world.violateBy(RuleAmbient, sandbox, cfg.Name, "add_ambient_capabilities is set")
	}
	r.checkAlpha(sandbox, cfg.Name, containerFieldsOfV1(req.GetConfig()))
	id, err := r.world.CreateContainer(ctx, req.GetPodSandboxId(), cfg, sandbox)
	return &criv1.CreateContainerResponse{ContainerId: id}, err
}

func (r *runtimeServer) StartContainer(ctx context.Context, req *criv1.StartContainerRequest) (*criv1.StartContainerResponse, error) {
	return &criv1.StartContainerResponse{}, r.world.StartContainer(ctx, req.GetContainerId())
}

func (r *runtimeServer) StopContainer(ctx context.Context, req *criv1.StopContainerRequest) (*criv1.StopContainerResponse, error) {
	grace := time.Duration(req.GetTimeout()) * time.Second
	return &criv1.StopContainerResponse{}, r.world.StopContainer(ctx, req.GetContainerId(), grace)
}

func (r *runtimeServer) RemoveContainer(ctx context.Context, req *criv1.RemoveContainerRequest) (*criv1.RemoveContainerResponse, error) {
	return &criv1.RemoveContainerResponse{}, r.world.RemoveContainer(ctx, req.GetContainerId())
}

func (r *runtimeServer) UpdateContainerResources(ctx context.Context, req *criv1.UpdateContainerResourcesRequest) (*criv1.UpdateContainerResourcesResponse, error) {
	return &criv1.UpdateContainerResourcesResponse{}, r.world.UpdateContainer(ctx, req.GetContainerId(), resourcesFromCRI(req.GetLinux()))
}

func (r *runtimeServer) ReopenContainerLog(ctx context.Context, req *criv1.ReopenContainerLogRequest) (*criv1.ReopenContainerLogResponse, error) {
	return &criv1.ReopenContainerLogResponse{}, r.world.ReopenLog(ctx, req.GetContainerId())
}

func (r *runtimeServer) ExecSync(ctx context.Context, req *criv1.ExecSyncRequest) (*criv1.ExecSyncResponse, error) {
	if t := req.GetTimeout(); t > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(t)*time.Second)
		defer cancel()
	}
	result, err := r.world.Exec(ctx, req.GetContainerId(), req.GetCmd())
	return &criv1.ExecSyncResponse{Stdout: []byte(result.Stdout), Stderr: []byte(result.Stderr), ExitCode: result.ExitCode}, err
}

func (r *runtimeServer) PodSandboxStatus(ctx context.Context, req *criv1.PodSandboxStatusRequest) (*criv1.PodSandboxStatusResponse, error) {
	var resp criv1.PodSandboxStatusResponse
	w, id := r.world, req.GetPodSandboxId()
	err := w.do(ctx, w.sandboxCall(MethodLook, id), func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		s := w.sandboxes[id]
		if s == nil {
			return notFound("an error occurred when try to find sandbox %q", id)
		}
		s.pod.told(time.Now())
		resp.Status = sandboxStatusToCRI(s.view(), s.cfg)
		return nil
	})
	return &resp, err
}

func (r *runtimeServer) ContainerStatus(ctx context.Context, req *criv1.ContainerStatusRequest) (*criv1.ContainerStatusResponse, error) {
	var resp criv1.ContainerStatusResponse
	w, id := r.world, req.GetContainerId()
	err := w.do(ctx, w.containerCall(MethodLook, id), func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		c := w.containers[id]
		if c == nil {
			return notFound("an error occurred when try to find container %q", id)
		}
		resp.Status = containerStatusToCRI(c.view(), c)
		return nil
	})
	return &resp, err
}

func (r *runtimeServer) ListPodSandbox(ctx context.Context, req *criv1.ListPodSandboxRequest) (*criv1.ListPodSandboxResponse, error) {
	var resp criv1.ListPodSandboxResponse
	w, f := r.world, req.GetFilter()
	uid := f.GetLabelSelector()[runtime.LabelPodUID]
	err := w.do(ctx, listCall(f.GetId(), uid), func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, s := range w.sandboxesLocked(f.GetId(), uid) {
			item := sandboxToCRI(s.view(), s.cfg)
			if (f.GetState() == nil || f.GetState().GetState() == item.GetState()) && selects(f.GetLabelSelector(), item.GetLabels()) {
				s.pod.told(time.Now())
				resp.Items = append(resp.Items, item)
			}
		}
		return nil
	})
	return &resp, err
}

func (r *runtimeServer) ListContainers(ctx context.Context, req *criv1.ListContainersRequest) (*criv1.ListContainersResponse, error) {
	var resp criv1.ListContainersResponse
	w, f := r.world, req.GetFilter()
	uid := f.GetLabelSelector()[runtime.LabelPodUID]
	err := w.do(ctx, listCall(f.GetId()+f.GetPodSandboxId(), uid), func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, c := range w.containersLocked(f.GetId(), f.GetPodSandboxId(), uid) {
			item := containerToCRI(c.view())
			if (f.GetState() == nil || f.GetState().GetState() == item.GetState()) && selects(f.GetLabelSelector(), item.GetLabels()) {
				resp.Containers = append(resp.Containers, item)
			}
		}
		return nil
	})
	return &resp, err
}

func (r *runtimeServer) GetContainerEvents(_ *criv1.GetEventsRequest, stream grpc.ServerStreamingServer[criv1.ContainerEventResponse]) error {
	ctx := stream.Context()
	if r.world.cfg.NoEvents || r.api != APIv1 {
		return status.Error(codes.Unimplemented, "unknown method GetContainerEvents")
	}
	var events <-chan Event
	err := r.world.do(ctx, call{method: MethodEvents}, func() error {
		events = r.world.Subscribe(ctx)
		return nil
	})
	if err != nil {
		return err
	}
	// The headers tell a test that it misses nothing from here on. A real
	// runtime sends them with its first event, so no client may wait for them.
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	for e := range events {
		if err := stream.Send(eventToCRI(e)); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return contextError(err)
	}
	return errDown()
}

func listCall(id, uid string) call {
	if id == "" && uid == "" {
		return call{method: MethodList}
	}
	return call{method: MethodLook, uid: uid}
}

// sandboxesLocked finds the candidates of a filter by index where it can.
func (w *World) sandboxesLocked(id, uid string) []*sandbox {
	switch {
	case id != "":
		if s := w.sandboxes[id]; s != nil {
			return []*sandbox{s}
		}
		return nil
	case uid != "":
		if p := w.pods[uid]; p != nil {
			return p.sandboxes
		}
		return nil
	}
	return slices.Collect(maps.Values(w.sandboxes))
}

func (w *World) containersLocked(id, sandboxID, uid string) []*container {
	var candidates []*container
	switch {
	case id != "":
		if c := w.containers[id]; c != nil {
			candidates = []*container{c}
		}
	case sandboxID != "":
		if s := w.sandboxes[sandboxID]; s != nil {
			candidates = s.pod.containers
		}
	case uid != "":
		if p := w.pods[uid]; p != nil {
			candidates = p.containers
		}
	default:
		return slices.Collect(maps.Values(w.containers))
	}
	if sandboxID == "" {
		return candidates
	}
	return slices.DeleteFunc(slices.Clone(candidates), func(c *container) bool { return c.sandbox.id != sandboxID })
}

func selects(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// violateBy reports a call that the World itself does not see.
func (w *World) violateBy(rule Rule, by runtime.SandboxConfig, container, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violateLocked(rule, &pod{uid: by.UID, namespace: by.Namespace, name: by.Name}, container, "%s", text)
}

func (r *runtimeServer) checkAlpha(by runtime.SandboxConfig, container string, fields []string) {
	if r.api != APIv1alpha2 {
		return
	}
	for _, f := range fields {
		r.world.violateBy(RuleAlphaField, by, container, f+" is set, which v1alpha2 does not have")
	}
}
