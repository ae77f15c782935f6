package cri

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

func TestImageService(t *testing.T) {
	f := newFake()
	c := start(t, f)
	ctx := t.Context()
	spec := runtime.ImageSpec{Image: "busybox:1", RuntimeHandler: "kata", Annotations: map[string]string{"a": "b"}}

	f.answer("ImageStatus", &runtimeapi.ImageStatusResponse{})
	if _, ok, err := c.ImageStatus(ctx, spec); ok || err != nil {
		t.Errorf("ImageStatus of an image that is not there: %v, %v", ok, err)
	}
	f.answer("ImageStatus", &runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{
		Id: "sha256:1", RepoTags: []string{"busybox:1"}, RepoDigests: []string{"busybox@sha256:2"}, Size: 3,
		Uid: &runtimeapi.Int64Value{Value: 4}, Username: "u", Pinned: true,
	}})
	got, ok, err := c.ImageStatus(ctx, spec)
	want := runtime.ImageInfo{
		ID: "sha256:1", RepoTags: []string{"busybox:1"}, RepoDigests: []string{"busybox@sha256:2"}, Size: 3,
		UID: new(int64(4)), User: "u", Pinned: true,
	}
	if diff := cmp.Diff(want, got); !ok || err != nil || diff != "" {
		t.Errorf("ImageStatus: %v, %v %s", ok, err, diff)
	}
	if sent := f.request("ImageStatus").(*runtimeapi.ImageStatusRequest).Image; sent.Image != spec.Image || sent.RuntimeHandler != "kata" || sent.Annotations["a"] != "b" {
		t.Errorf("the image was asked for as %v", sent)
	}

	f.answer("PullImage", &runtimeapi.PullImageResponse{ImageRef: "sha256:1"})
	auth := runtime.ImageAuth{Username: "u", Password: "p", Auth: "a", ServerAddress: "s", IdentityToken: "i", RegistryToken: "r"}
	if ref, err := c.PullImage(ctx, runtime.ImagePull{Spec: spec, Auth: auth, Sandbox: plainSandbox()}); err != nil || ref != "sha256:1" {
		t.Errorf("PullImage = %q, %v", ref, err)
	}
	pull := f.request("PullImage").(*runtimeapi.PullImageRequest)
	sent := runtime.ImageAuth{
		Username: pull.Auth.Username, Password: pull.Auth.Password, Auth: pull.Auth.Auth, ServerAddress: pull.Auth.ServerAddress,
		IdentityToken: pull.Auth.IdentityToken, RegistryToken: pull.Auth.RegistryToken,
	}
	if sent != auth || pull.SandboxConfig.Metadata.Uid != "u1" {
		t.Errorf("the pull was sent as %v", pull)
	}
	if _, ok := f.deadlines["PullImage"]; ok {
		t.Error("a pull has a bound besides its context")
	}
	if _, err := c.PullImage(ctx, runtime.ImagePull{Spec: spec}); err != nil || f.request("PullImage").(*runtimeapi.PullImageRequest).Auth != nil {
		t.Errorf("an anonymous pull sends credentials (%v)", err)
	}

	f.answer("RemoveImage", status.Error(codes.NotFound, "gone"))
	if err := c.RemoveImage(ctx, spec); err != nil {
		t.Errorf("RemoveImage of what is not there: %v", err)
	}
	f.answer("ImageFsInfo", &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{{
		Timestamp: 5, FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: "/i"},
		UsedBytes: &runtimeapi.UInt64Value{Value: 6}, InodesUsed: &runtimeapi.UInt64Value{Value: 7},
	}}})
	fs, err := c.ImageFsInfo(ctx)
	wantFS := ImageFilesystems{Images: []FilesystemUsage{{Mountpoint: "/i", UsedBytes: 6, InodesUsed: 7, At: time.Unix(0, 5)}}}
	if diff := cmp.Diff(wantFS, fs); err != nil || diff != "" {
		t.Errorf("ImageFsInfo: %v %s", err, diff)
	}
}

func TestRuntimeConfiguration(t *testing.T) {
	f := newFake()
	c := start(t, f)
	if _, err := c.CgroupDriver(t.Context()); !IsUnimplemented(err) {
		t.Errorf("CgroupDriver of an old runtime: %v", err)
	}
	for driver, want := range map[runtimeapi.CgroupDriver]string{
		runtimeapi.CgroupDriver_CGROUPFS: CgroupDriverCgroupfs, runtimeapi.CgroupDriver_SYSTEMD: CgroupDriverSystemd,
	} {
		f.answer("RuntimeConfig", &runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: driver}})
		if got, err := c.CgroupDriver(t.Context()); err != nil || got != want {
			t.Errorf("CgroupDriver = %q, %v; want %q", got, err, want)
		}
	}
	f.answer("UpdateRuntimeConfig", &runtimeapi.UpdateRuntimeConfigResponse{})
	if err := c.UpdateRuntimeConfig(t.Context(), "10.0.0.0/24"); err != nil {
		t.Error(err)
	}
	sent := f.request("UpdateRuntimeConfig").(*runtimeapi.UpdateRuntimeConfigRequest)
	if got := sent.GetRuntimeConfig().GetNetworkConfig().GetPodCidr(); got != "10.0.0.0/24" {
		t.Errorf("the pod CIDR was sent as %q", got)
	}
}
