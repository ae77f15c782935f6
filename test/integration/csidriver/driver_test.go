package csidriver_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	csi "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"nodekit.dev/test/integration/csidriver"
)

// orchestrator calls a driver as an agent would.
type orchestrator struct {
	csi.NodeClient
	t      *testing.T
	driver *csidriver.Driver
	dir    string
}

func start(t *testing.T, change ...func(*csidriver.Config)) *orchestrator {
	t.Helper()
	csidriver.Require(t)
	dir := t.TempDir()
	cfg := csidriver.Config{Name: "disk.example", Dir: filepath.Join(dir, "driver"), KubeletRoot: filepath.Join(dir, "kubelet"), NodeID: "n1"}
	for _, c := range change {
		c(&cfg)
	}
	d, err := csidriver.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(); err != nil {
			t.Error(err)
		}
	})
	o := &orchestrator{NodeClient: csi.NewNodeClient(dial(t, d.Endpoint())), t: t, driver: d, dir: dir}
	for _, sub := range []string{"stage", "pods"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(o.cleanUp)
	return o
}

func dial(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// cleanUp takes away what a test that failed left, so that its folder can go.
func (o *orchestrator) cleanUp() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, c := range o.driver.Calls("", csidriver.Publish) {
		_, _ = o.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: c.Volume, TargetPath: c.Target})
	}
	for _, c := range o.driver.Calls("", csidriver.Stage) {
		_, _ = o.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: c.Volume, StagingTargetPath: c.Staging})
	}
}

func (o *orchestrator) staging() string          { return filepath.Join(o.dir, "stage") }
func (o *orchestrator) target(pod string) string { return filepath.Join(o.dir, "pods", pod) }

func filesystem(fsType string) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: fsType}},
	}
}

func block() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
	}
}

func (o *orchestrator) must(_ any, err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *orchestrator) stage(c *csi.VolumeCapability) (*csi.NodeStageVolumeResponse, error) {
	return o.NodeStageVolume(o.t.Context(), &csi.NodeStageVolumeRequest{VolumeId: "v", StagingTargetPath: o.staging(), VolumeCapability: c})
}

func (o *orchestrator) publish(c *csi.VolumeCapability) (*csi.NodePublishVolumeResponse, error) {
	return o.NodePublishVolume(o.t.Context(), &csi.NodePublishVolumeRequest{
		VolumeId: "v", StagingTargetPath: o.staging(), TargetPath: o.target("p"), VolumeCapability: c,
	})
}

func (o *orchestrator) undo() {
	o.t.Helper()
	o.must(o.NodeUnpublishVolume(o.t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: "v", TargetPath: o.target("p")}))
	o.must(o.NodeUnstageVolume(o.t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: "v", StagingTargetPath: o.staging()}))
}

func (o *orchestrator) clean() {
	o.t.Helper()
	if faults := slices.Concat(o.driver.Violations(), o.driver.Leaks()); len(faults) > 0 {
		o.t.Errorf("%s", strings.Join(faults, "\n"))
	}
}

// TestFileSystems: a volume is made, mounted, written, grown while it is
// mounted, and taken away; what was written is in its file.
func TestFileSystems(t *testing.T) {
	for _, fsType := range []string{"xfs", "ext4"} {
		t.Run(fsType, func(t *testing.T) {
			t.Parallel()
			o := start(t)
			o.must(nil, o.driver.Create("v", csidriver.Volume{Size: 320 << 20, FSType: fsType}))
			o.must(o.stage(filesystem("")))
			o.must(o.stage(filesystem("")))
			o.must(o.publish(filesystem("")))
			o.must(o.publish(filesystem("")))
			o.must(nil, os.WriteFile(filepath.Join(o.target("p"), "file"), []byte("kept"), 0o600))
			if csidriver.CanGrow(fsType) {
				o.grow()
			} else {
				t.Logf("%s is not grown: this machine does not let a mounted one grow", fsType)
			}
			if len(o.driver.Leaks()) < 3 {
				t.Errorf("a mounted volume leaks only %v", o.driver.Leaks())
			}
			o.undo()
			text, err := o.driver.ReadFile(t.Context(), "v", "file")
			if err != nil || string(text) != "kept" {
				t.Errorf("%q, %v", text, err)
			}
			o.clean()
			o.must(nil, o.driver.Delete("v"))
		})
	}
}

func (o *orchestrator) grow() {
	o.t.Helper()
	before := o.total()
	o.must(o.NodeExpandVolume(o.t.Context(), &csi.NodeExpandVolumeRequest{
		VolumeId: "v", VolumePath: o.target("p"), CapacityRange: &csi.CapacityRange{RequiredBytes: 500 << 20},
	}))
	if after := o.total(); after < before+(100<<20) {
		o.t.Errorf("grown from %d to %d", before, after)
	}
}

func (o *orchestrator) total() int64 {
	o.t.Helper()
	reply, err := o.NodeGetVolumeStats(o.t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: "v", VolumePath: o.target("p")})
	if err != nil || reply.GetUsage()[1].GetTotal() == 0 {
		o.t.Fatal(reply, err)
	}
	return reply.GetUsage()[0].GetTotal()
}

func TestBlock(t *testing.T) {
	o := start(t)
	o.must(nil, o.driver.Create("v", csidriver.Volume{Size: 8 << 20}))
	o.must(o.stage(block()))
	o.must(o.publish(block()))
	device, err := os.OpenFile(o.target("p"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	size, err := device.Seek(0, 2)
	if err != nil || size != 8<<20 {
		t.Errorf("the device has %d bytes, %v", size, err)
	}
	o.must(nil, device.Close())
	o.undo()
	o.clean()
}

func TestInline(t *testing.T) {
	o := start(t)
	o.must(o.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{
		VolumeId: "v", TargetPath: o.target("p"), VolumeCapability: filesystem(""),
		VolumeContext: map[string]string{"csi.storage.k8s.io/ephemeral": "true"},
	}))
	o.must(nil, os.WriteFile(filepath.Join(o.target("p"), "file"), nil, 0o600))
	o.must(o.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: "v", TargetPath: o.target("p")}))
	o.clean()
}

// TestRules: each call that the specification forbids is refused and noted.
func TestRules(t *testing.T) {
	capability := filesystem("ext4")
	staged := func(o *orchestrator) { o.must(o.stage(capability)) }
	published := func(o *orchestrator) { staged(o); o.must(o.publish(capability)) }
	for name, tc := range map[string]struct {
		before func(*orchestrator)
		call   func(*orchestrator) error
		want   string
		code   codes.Code
	}{
		"publish before stage": {nil, func(o *orchestrator) error { _, err := o.publish(capability); return err }, "it is not staged", codes.FailedPrecondition},
		"unstage while published": {published, func(o *orchestrator) error {
			_, err := o.NodeUnstageVolume(o.t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: "v", StagingTargetPath: o.staging()})
			return err
		}, "still published", codes.FailedPrecondition},
		"other arguments": {published, func(o *orchestrator) error {
			_, err := o.NodePublishVolume(o.t.Context(), &csi.NodePublishVolumeRequest{
				VolumeId: "v", StagingTargetPath: o.staging(), TargetPath: o.target("p"), VolumeCapability: capability, Readonly: true,
			})
			return err
		}, "other arguments", codes.AlreadyExists},
		"no capability": {nil, func(o *orchestrator) error { _, err := o.stage(nil); return err }, "volume_capability is missing", codes.InvalidArgument},
		"no volume": {nil, func(o *orchestrator) error {
			_, err := o.NodeUnpublishVolume(o.t.Context(), &csi.NodeUnpublishVolumeRequest{TargetPath: "/t"})
			return err
		}, "volume_id is missing", codes.InvalidArgument},
		"no folder for the stage": {func(o *orchestrator) { o.must(nil, os.Remove(o.staging())) }, func(o *orchestrator) error { _, err := o.stage(capability); return err }, "is no directory", codes.InvalidArgument},
		"no secret": {func(o *orchestrator) { staged(o) }, func(o *orchestrator) error {
			_, err := o.NodeExpandVolume(o.t.Context(), &csi.NodeExpandVolumeRequest{VolumeId: "v", VolumePath: o.staging()})
			return err
		}, `the secret "key"`, codes.InvalidArgument},
		"growth of what is not there": {nil, func(o *orchestrator) error {
			_, err := o.NodeExpandVolume(o.t.Context(), &csi.NodeExpandVolumeRequest{VolumeId: "v", VolumePath: "/elsewhere", Secrets: map[string]string{"key": "x"}})
			return err
		}, "neither staged nor published", codes.NotFound},
		"group without its capability": {nil, func(o *orchestrator) error {
			c := filesystem("ext4")
			c.GetMount().VolumeMountGroup = "1"
			_, err := o.stage(c)
			return err
		}, "needs VOLUME_MOUNT_GROUP", codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := start(t, func(c *csidriver.Config) {
				c.Secrets = map[csidriver.Op]map[string]string{csidriver.Expand: {"key": "x"}}
			})
			o.must(nil, o.driver.Create("v", csidriver.Volume{Size: 8 << 20}))
			if tc.before != nil {
				tc.before(o)
			}
			err := tc.call(o)
			found := strings.Join(o.driver.Violations(), "\n")
			if status.Code(err) != tc.code || !strings.Contains(found, tc.want) {
				t.Errorf("%v; noted: %s", err, found)
			}
		})
	}
}

// TestHeld: a call that is held keeps the volume; once its caller is gone, the
// next call is no violation, and starts anew.
func TestHeld(t *testing.T) {
	o := start(t)
	o.must(nil, o.driver.Create("v", csidriver.Volume{Size: 8 << 20}))
	held := o.driver.Hold(csidriver.Stage, csidriver.Before, "v")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := o.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: "v", StagingTargetPath: o.staging(), VolumeCapability: filesystem("")})
		done <- err
	}()
	o.must(nil, held.Reached(t.Context()))
	if _, err := o.stage(filesystem("")); status.Code(err) != codes.Aborted || len(o.driver.Violations()) != 1 {
		t.Errorf("a second call: %v, %v", err, o.driver.Violations())
	}
	cancel()
	if err := <-done; status.Code(err) != codes.Canceled {
		t.Error(err)
	}
	o.must(nil, o.driver.Until(t.Context(), func(all []csidriver.Call) error {
		if all[0].Code == "" || all[0].Done {
			return os.ErrInvalid
		}
		return nil
	}))
	o.must(o.stage(filesystem("")))
	o.undo()
	if found := o.driver.Violations(); len(found) != 1 {
		t.Error(found)
	}
}

// TestUnheardAnswer: work whose answer the caller never got must be asked for
// again: the driver does not take it as known.
func TestUnheardAnswer(t *testing.T) {
	o := start(t)
	o.must(nil, o.driver.Create("v", csidriver.Volume{Size: 8 << 20}))
	held := o.driver.Hold(csidriver.Stage, csidriver.After, "v")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_ = held.Reached(ctx)
		cancel()
	}()
	if _, err := o.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: "v", StagingTargetPath: o.staging(), VolumeCapability: filesystem("")}); err == nil {
		t.Error("a held call was answered")
	}
	if _, err := o.publish(filesystem("")); status.Code(err) != codes.FailedPrecondition && status.Code(err) != codes.Aborted {
		t.Error(err)
	}
	o.must(o.stage(filesystem("")))
	o.must(o.publish(filesystem("")))
	o.undo()
	if left := o.driver.Leaks(); len(left) > 0 {
		t.Error(left)
	}
}

func TestFail(t *testing.T) {
	o := start(t)
	o.must(nil, o.driver.Create("v", csidriver.Volume{Size: 8 << 20}))
	o.driver.Fail(csidriver.Stage, "v", codes.ResourceExhausted, 1)
	if _, err := o.stage(filesystem("")); status.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
	o.clean()
	o.must(o.stage(filesystem("")))
	o.must(o.NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: "v", StagingTargetPath: o.staging()}))
	o.clean()
}

// TestAnotherDriver goes on in the folder of one that was killed.
func TestAnotherDriver(t *testing.T) {
	o := start(t)
	o.must(nil, o.driver.Create("v", csidriver.Volume{Size: 8 << 20}))
	o.must(o.stage(filesystem("")))
	o.must(nil, o.driver.Stop())
	next, err := csidriver.New(csidriver.Config{Name: "disk.example", Dir: filepath.Join(o.dir, "driver"), KubeletRoot: filepath.Join(o.dir, "kubelet"), NodeID: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	o.must(nil, next.Start())
	t.Cleanup(func() { _ = next.Stop() })
	o.driver, o.NodeClient = next, csi.NewNodeClient(dial(t, next.Endpoint()))
	o.must(o.publish(filesystem("")))
	o.undo()
	o.clean()
	if n := len(next.Calls("v", csidriver.Stage)); n != 1 {
		t.Errorf("the journal has %d stages", n)
	}
}

// TestRegistration registers as node-driver-registrar does.
func TestRegistration(t *testing.T) {
	o := start(t, func(c *csidriver.Config) { c.MaxVolumes = 3; c.Topology = map[string]string{"zone": "a"} })
	client := registration.NewRegistrationClient(dial(t, filepath.Join(o.dir, "kubelet/plugins_registry/disk.example-reg.sock")))
	info, err := client.GetInfo(t.Context(), &registration.InfoRequest{})
	if err != nil || info.GetType() != "CSIPlugin" || info.GetEndpoint() != o.driver.Endpoint() {
		t.Fatal(info, err)
	}
	soon, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = client.NotifyRegistrationStatus(t.Context(), &registration.RegistrationStatus{Error: "no such version"})
	o.must(nil, err)
	if err := o.driver.Registered(soon); err == nil || !strings.Contains(err.Error(), "no such version") {
		t.Error(err)
	}
	_, err = client.NotifyRegistrationStatus(t.Context(), &registration.RegistrationStatus{PluginRegistered: true})
	o.must(nil, err)
	o.must(nil, o.driver.Registered(t.Context()))
	o.driver.SetMaxVolumes(5)
	node, err := o.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
	if err != nil || node.GetMaxVolumesPerNode() != 5 || node.GetAccessibleTopology().GetSegments()["zone"] != "a" {
		t.Error(node, err)
	}
}

// TestCondition: a driver of CSI 1.12 tells how a volume is, and so does one of
// today, each in its own words.
func TestCondition(t *testing.T) {
	o := start(t, func(c *csidriver.Config) {
		c.With = []csidriver.Capability{csidriver.Condition, csidriver.VolumeHealth}
	})
	o.must(nil, o.driver.Create("v", csidriver.Volume{FSType: "dir"}))
	o.must(nil, o.driver.SetCondition("v", true, "a bad disk"))
	reply, err := o.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: "v", VolumePath: o.dir})
	if err != nil || !strings.Contains(string(reply.ProtoReflect().GetUnknown()), "a bad disk") {
		t.Error(reply, err)
	}
	health, err := o.NodeGetVolumeHealth(t.Context(), &csi.NodeGetVolumeHealthRequest{VolumeId: "v"})
	if err != nil || health.GetVolumeHealth().GetHealthStatuses()[0].GetMessage() != "a bad disk" {
		t.Error(health, err)
	}
}
