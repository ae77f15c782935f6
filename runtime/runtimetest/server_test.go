package runtimetest_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
	"nodekit.dev/runtime/runtimetest"
)

func TestAlphaServerKnowsNoV1(t *testing.T) {
	report := &recorder{}
	w := runtimetest.NewWorld(report, runtimetest.Config{})
	server := w.ServeAPI(t, t.TempDir(), runtimetest.APIv1alpha2)
	conn, err := grpc.NewClient(server.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })

	_, err = criv1.NewRuntimeServiceClient(conn).Version(t.Context(), &criv1.VersionRequest{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("v1: error %v, want Unimplemented", err)
	}
	_, err = criv1.NewImageServiceClient(conn).ListImages(t.Context(), &criv1.ListImagesRequest{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("v1 images: error %v, want Unimplemented", err)
	}

	var version criv1.VersionResponse
	must(t, conn.Invoke(t.Context(), "/runtime.v1alpha2.RuntimeService/Version", &criv1.VersionRequest{}, &version))
	if version.GetRuntimeApiVersion() != "v1alpha2" {
		t.Errorf("version %v", &version)
	}
	var images criv1.ListImagesResponse
	must(t, conn.Invoke(t.Context(), "/runtime.v1alpha2.ImageService/ListImages", &criv1.ListImagesRequest{}, &images))
	if len(images.GetImages()) != 1 || !images.GetImages()[0].GetPinned() {
		t.Errorf("images %v, want the pinned pause image", &images)
	}

	sandbox := runtimetest.SandboxFor("default", "pod-u1", "u1", 0)
	run := &criv1.RunPodSandboxRequest{Config: sandboxConfig(sandbox)}
	run.Config.Linux.SecurityContext.SupplementalGroupsPolicy = criv1.SupplementalGroupsPolicy_Strict
	must(t, conn.Invoke(t.Context(), "/runtime.v1alpha2.RuntimeService/RunPodSandbox", run, &criv1.RunPodSandboxResponse{}))
	if broken := w.Violations(); len(broken) != 1 || broken[0].Rule != runtimetest.RuleAlphaField || len(report.text) != 1 {
		t.Errorf("violations %v, want the field that v1alpha2 lacks", broken)
	}
}

func TestRestartDropsStreamsAndKeepsPods(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	c := dial(t, w.Serve(t, t.TempDir()).Endpoint())
	stream, err := c.runtime.GetContainerEvents(t.Context(), &criv1.GetEventsRequest{})
	must(t, err)
	_, err = stream.Header()
	must(t, err)
	_, _, id := pod(t, w, "u1")
	for _, want := range []criv1.ContainerEventType{
		criv1.ContainerEventType_CONTAINER_CREATED_EVENT, // sandbox
		criv1.ContainerEventType_CONTAINER_STARTED_EVENT,
		criv1.ContainerEventType_CONTAINER_CREATED_EVENT, // container
	} {
		e, err := stream.Recv()
		must(t, err)
		if e.GetContainerEventType() != want || uidOf(e) != "u1" {
			t.Errorf("event %v, want %v of u1", e, want)
		}
		if want == criv1.ContainerEventType_CONTAINER_CREATED_EVENT && e.GetContainerId() == id && len(e.GetContainersStatuses()) != 1 {
			t.Errorf("the event of the container does not show it: %v", e)
		}
	}

	w.Down()
	if _, err := stream.Recv(); err == nil {
		t.Error("the stream goes on while the runtime is down")
	}
	if _, err := c.LookPod(t.Context(), "u1"); status.Code(err) != codes.Unavailable {
		t.Errorf("error %v while the runtime is down, want Unavailable", err)
	}
	must(t, w.Up())
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	resp, err := c.runtime.ContainerStatus(ctx, &criv1.ContainerStatusRequest{ContainerId: id}, grpc.WaitForReady(true))
	must(t, err)
	if resp.GetStatus().GetState() != criv1.ContainerState_CONTAINER_CREATED {
		t.Errorf("after the restart: %v", resp)
	}
}

func TestNoEvents(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{NoEvents: true})
	c := dial(t, w.Serve(t, t.TempDir()).Endpoint())
	stream, err := c.runtime.GetContainerEvents(t.Context(), &criv1.GetEventsRequest{})
	must(t, err)
	if _, err := stream.Recv(); status.Code(err) != codes.Unimplemented {
		t.Errorf("error %v, want Unimplemented", err)
	}
}

func TestHangOverTheWireEndsWithTheCaller(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	c := dial(t, w.Serve(t, t.TempDir()).Endpoint())
	w.Fault(runtimetest.Fault{Kind: runtimetest.Hang, Method: runtimetest.MethodLook, UID: "u1"})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.LookPod(ctx, "u1"); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("error %v, want DeadlineExceeded", err)
	}
	if p, err := c.LookPod(t.Context(), "u2"); err != nil || !p.Empty() {
		t.Errorf("another pod: %+v, error %v", p, err)
	}
}

func TestServeOnBufconn(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{CgroupDriver: "systemd", Handlers: []string{"gvisor"}})
	var current *bufconn.Listener
	w.ServeOn(t, func() (net.Listener, error) {
		current = bufconn.Listen(1 << 16)
		return current, nil
	})
	conn, err := grpc.NewClient("passthrough:world", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return current.DialContext(ctx) }))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	c := criv1.NewRuntimeServiceClient(conn)
	config, err := c.RuntimeConfig(t.Context(), &criv1.RuntimeConfigRequest{})
	must(t, err)
	if config.GetLinux().GetCgroupDriver() != criv1.CgroupDriver_SYSTEMD {
		t.Errorf("runtime config %v", config)
	}
	s, err := c.Status(t.Context(), &criv1.StatusRequest{})
	must(t, err)
	if len(s.GetStatus().GetConditions()) != 2 || len(s.GetRuntimeHandlers()) != 2 || s.GetRuntimeHandlers()[1].GetName() != "gvisor" {
		t.Errorf("status %v", s)
	}
	_, err = c.UpdateRuntimeConfig(t.Context(), &criv1.UpdateRuntimeConfigRequest{
		RuntimeConfig: &criv1.RuntimeConfig{NetworkConfig: &criv1.NetworkConfig{PodCidr: "10.0.0.0/24,fd00::/64"}}})
	must(t, err)
	if got := w.PodCIDR(); got != "10.0.0.0/24,fd00::/64" {
		t.Errorf("pod CIDR %q", got)
	}
	req := &criv1.RunPodSandboxRequest{Config: sandboxConfig(runtimetest.SandboxFor("default", "web", "u1", 0)), RuntimeHandler: "kata"}
	if _, err := c.RunPodSandbox(t.Context(), req); err == nil {
		t.Error("a sandbox of an unknown runtime handler was made")
	}
	req.RuntimeHandler = "gvisor"
	if _, err := c.RunPodSandbox(t.Context(), req); err != nil {
		t.Errorf("a sandbox of a known runtime handler: %v", err)
	}
}

// What arrives is kept as it was sent.
func TestConfigurationArrives(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	c := dial(t, w.Serve(t, t.TempDir()).Endpoint())
	w.AddImage(image, runtimetest.RegistryImage{})
	sandbox := runtimetest.SandboxFor("default", "web", "u1", 0)
	sandbox.LogDirectory, sandbox.CgroupParent = "/logs", "/kubepods"
	sandboxID, err := c.RunSandbox(t.Context(), sandbox)
	must(t, err)
	got, _ := w.SandboxConfig(sandboxID)
	if diff := cmp.Diff(sandbox, got); diff != "" {
		t.Errorf("sandbox (-sent +arrived):\n%s", diff)
	}

	user := int64(1000)
	sent := containerConfig(runtimetest.ContainerFor(sandbox, "app", image, 0, "run"))
	sent.Envs = []*criv1.KeyValue{{Key: "A", Value: []byte("b")}}
	sent.Mounts = []*criv1.Mount{{HostPath: "/h", ContainerPath: "/c", Readonly: true, Propagation: criv1.MountPropagation_PROPAGATION_HOST_TO_CONTAINER}}
	sent.StopSignal = criv1.Signal_SIGNAL_SIGUSR1
	sent.Linux.Resources = &criv1.LinuxContainerResources{CpuShares: 512, HugepageLimits: []*criv1.HugepageLimit{{PageSize: "2MB", Limit: 5}}}
	sent.Linux.SecurityContext.RunAsUser = &criv1.Int64Value{Value: user}
	sent.Linux.SecurityContext.NamespaceOptions = &criv1.NamespaceOption{
		Pid: criv1.NamespaceMode_CONTAINER,
		UsernsOptions: &criv1.UserNamespace{
			Uids: []*criv1.IDMapping{{HostId: 65536, Length: 1}}, Gids: []*criv1.IDMapping{{HostId: 65537, Length: 2}},
		},
	}
	sent.Linux.SecurityContext.Seccomp = &criv1.SecurityProfile{ProfileType: criv1.SecurityProfile_Localhost, LocalhostRef: "/p"}
	resp, err := c.runtime.CreateContainer(t.Context(), &criv1.CreateContainerRequest{PodSandboxId: sandboxID, Config: sent, SandboxConfig: sandboxConfig(sandbox)})
	must(t, err)

	want := runtimetest.ContainerFor(sandbox, "app", image, 0, "run")
	want.Env = []runtime.EnvVar{{Name: "A", Value: "b"}}
	want.Mounts = []runtime.Mount{{HostPath: "/h", ContainerPath: "/c", ReadOnly: true, Propagation: runtime.PropagationHostToContainer}}
	want.StopSignal = "SIGUSR1"
	want.Resources = runtime.Resources{CPUShares: 512, HugepageLimits: map[string]uint64{"2MB": 5}}
	want.Security.RunAsUser = &user
	want.Security.Seccomp = &runtime.Profile{Type: runtime.ProfileLocalhost, LocalhostRef: "/p"}
	want.Security.Namespaces = runtime.Namespaces{Network: runtime.NamespacePod, PID: runtime.NamespaceContainer, IPC: runtime.NamespacePod}
	want.Security.Namespaces.User = &runtime.UserNamespace{
		UIDs: []runtime.IDMapping{{HostID: 65536, Length: 1}}, GIDs: []runtime.IDMapping{{HostID: 65537, Length: 2}},
	}
	arrived, _ := w.ContainerConfig(resp.GetContainerId())
	if diff := cmp.Diff(want, arrived); diff != "" {
		t.Errorf("container (-want +arrived):\n%s", diff)
	}
}
