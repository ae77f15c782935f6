package cri

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

// TestAlphaTablesNameWhatExists holds the tables to the messages of cri-api:
// a name that is spelled wrong would let a field through.
func TestAlphaTablesNameWhatExists(t *testing.T) {
	refused, dropped := 0, 0
	messages := runtimeapi.File_staging_src_k8s_io_cri_api_pkg_apis_runtime_v1_api_proto.Messages()
	for i := range messages.Len() {
		fields := messages.Get(i).Fields()
		for j := range fields.Len() {
			switch alphaFields(string(messages.Get(i).Name()) + "." + string(fields.Get(j).Name())) {
			case refuse:
				refused++
			case drop:
				dropped++
			}
		}
	}
	if refused != 14 || dropped != 1 {
		t.Errorf("%d fields are refused and %d dropped; the table has 14 and 1", refused, dropped)
	}
	lacking := 0
	for _, desc := range []protoreflect.ServiceDescriptor{
		runtimeapi.File_staging_src_k8s_io_cri_api_pkg_apis_runtime_v1_api_proto.Services().ByName("RuntimeService"),
		runtimeapi.File_staging_src_k8s_io_cri_api_pkg_apis_runtime_v1_api_proto.Services().ByName("ImageService"),
	} {
		for i := range desc.Methods().Len() {
			if alphaLacks("/runtime.v1.X/" + string(desc.Methods().Get(i).Name())) {
				lacking++
			}
		}
	}
	if lacking != 14 {
		t.Errorf("%d methods of the CRI are lacking in v1alpha2; the table has 14", lacking)
	}
}

func TestFitRefusesAndDrops(t *testing.T) {
	const method = "/runtime.v1.RuntimeService/CreateContainer"
	image := func() *runtimeapi.CreateContainerRequest {
		return &runtimeapi.CreateContainerRequest{Config: &runtimeapi.ContainerConfig{
			Image:  &runtimeapi.ImageSpec{Image: "sha256:1", UserSpecifiedImage: "busybox:1"},
			Mounts: []*runtimeapi.Mount{{HostPath: "/a"}, {HostPath: "/b"}},
			Labels: map[string]string{"a": "b"},
		}}
	}
	req := image()
	fitted, err := fit(apiV1alpha2, method, req)
	if err != nil {
		t.Fatal(err)
	}
	if got := fitted.(*runtimeapi.CreateContainerRequest).Config.Image; got.UserSpecifiedImage != "" || got.Image != "sha256:1" {
		t.Errorf("the image was sent as %v", got)
	}
	if !proto.Equal(req, image()) {
		t.Error("fit changed the caller's message")
	}
	if same, err := fit(apiV1, method, req); err != nil || same != any(req) {
		t.Errorf("v1 requests are not sent as they are: %v", err)
	}
	req.Config.Mounts[1].RecursiveReadOnly = true
	if _, err := fit(apiV1alpha2, method, req); err == nil || !strings.Contains(err.Error(), "CRI v1alpha2 only, which has no Mount.recursive_read_only") {
		t.Errorf("fit = %v", err)
	}
}

func TestAlphaRuntime(t *testing.T) {
	f, socket := newFake(), socketIn(t)
	f.answer("CreateContainer", &runtimeapi.CreateContainerResponse{ContainerId: "c1"})
	t.Cleanup(serve(t, f, socket, apiV1alpha2))
	c := connect(t, socket)
	cfg := plainContainer()
	cfg.Image.Requested = "busybox:1"
	if id, err := c.CreateContainer(t.Context(), "s", cfg, plainSandbox()); err != nil || id != "c1" {
		t.Errorf("CreateContainer = %q, %v", id, err)
	}
	cfg.StopSignal = "SIGINT"
	_, err := c.CreateContainer(t.Context(), "s", cfg, plainSandbox())
	if err == nil || !strings.Contains(err.Error(), "has no ContainerConfig.stop_signal") {
		t.Errorf("CreateContainer with a stop signal: %v", err)
	}
	pull := runtime.ImagePull{Spec: runtime.ImageSpec{Image: "x", RuntimeHandler: "kata"}}
	if _, err := c.PullImage(t.Context(), pull); err == nil || !strings.Contains(err.Error(), "has no ImageSpec.runtime_handler") {
		t.Errorf("PullImage for a handler: %v", err)
	}
	if err := c.Events(t.Context(), func() { t.Error("opened") }, func(runtime.Hint) {}); !IsUnimplemented(err) {
		t.Errorf("Events = %v", err)
	}
	if _, err := c.CgroupDriver(t.Context()); !IsUnimplemented(err) || !strings.Contains(err.Error(), "has no RuntimeConfig") {
		t.Errorf("CgroupDriver = %v", err)
	}
}
