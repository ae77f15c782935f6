package csi_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"nodekit.dev/volume/csi"
)

// strictDriver is a CSI node driver with real bind mounts of directories. It
// fails the test on what CSI forbids.
type strictDriver struct {
	csipb.UnimplementedNodeServer
	t    testing.TB
	data string // a folder per volume, which no call may empty
	caps []csipb.NodeServiceCapability_RPC_Type
	info *csipb.NodeGetInfoResponse

	mu        sync.Mutex
	inFlight  map[string]string          // method by volume
	staged    map[string]string          // path by volume
	published map[string]map[string]bool // targets by volume
	calls     []string
	requests  map[string]proto.Message // the last of each method
	// meet is called in each call, before its work (after: false) and after it.
	meet func(ctx context.Context, method string, after bool) error
	size map[string]int64
}

func (d *strictDriver) forbid(format string, args ...any) {
	d.t.Errorf("CSI forbids: "+format, args...)
}

// call is around each call for a volume.
func (d *strictDriver) call(ctx context.Context, method, id string, req proto.Message, work func() error) error {
	d.mu.Lock()
	if other := d.inFlight[id]; other != "" {
		d.forbid("%s while %s of %s is in flight", method, other, id)
	}
	d.inFlight[id] = method
	d.calls = append(d.calls, strings.TrimSuffix(strings.TrimPrefix(method, "Node"), "Volume")+" "+id)
	d.requests[method] = req
	meet := d.meet
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.inFlight, id)
	}()
	if meet == nil {
		meet = func(context.Context, string, bool) error { return nil }
	}
	if err := meet(ctx, method, false); err != nil {
		return err
	}
	d.mu.Lock()
	err := work()
	d.mu.Unlock()
	if err != nil {
		return err
	}
	return meet(ctx, method, true)
}

func bind(source, target string) error {
	if mounted, err := mountinfo.Mounted(target); err == nil && mounted {
		return nil
	}
	return unix.Mount(source, target, "", unix.MS_BIND, "")
}

func unbind(target string) error {
	err := unix.Unmount(target, unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (d *strictDriver) source(id string) string { return filepath.Join(d.data, id) }

func (d *strictDriver) NodeStageVolume(ctx context.Context, req *csipb.NodeStageVolumeRequest) (*csipb.NodeStageVolumeResponse, error) {
	return &csipb.NodeStageVolumeResponse{}, d.call(ctx, "NodeStageVolume", req.GetVolumeId(), req, func() error {
		if info, err := os.Stat(req.GetStagingTargetPath()); err != nil || !info.IsDir() {
			d.forbid("staging to %s, which is no directory: %v", req.GetStagingTargetPath(), err)
		}
		if at := d.staged[req.GetVolumeId()]; at != "" && at != req.GetStagingTargetPath() {
			d.forbid("a second staging path %s beside %s", req.GetStagingTargetPath(), at)
		}
		d.staged[req.GetVolumeId()] = req.GetStagingTargetPath()
		if req.GetVolumeCapability().GetBlock() != nil {
			return nil
		}
		return bind(d.source(req.GetVolumeId()), req.GetStagingTargetPath())
	})
}

func (d *strictDriver) NodeUnstageVolume(ctx context.Context, req *csipb.NodeUnstageVolumeRequest) (*csipb.NodeUnstageVolumeResponse, error) {
	return &csipb.NodeUnstageVolumeResponse{}, d.call(ctx, "NodeUnstageVolume", req.GetVolumeId(), req, func() error {
		if len(d.published[req.GetVolumeId()]) > 0 {
			d.forbid("unstage of %s while it is published at %v", req.GetVolumeId(), d.published[req.GetVolumeId()])
		}
		delete(d.staged, req.GetVolumeId())
		return unbind(req.GetStagingTargetPath())
	})
}

func (d *strictDriver) stages() bool {
	return slices.Contains(d.caps, csipb.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME)
}

func (d *strictDriver) NodePublishVolume(ctx context.Context, req *csipb.NodePublishVolumeRequest) (*csipb.NodePublishVolumeResponse, error) {
	return &csipb.NodePublishVolumeResponse{}, d.call(ctx, "NodePublishVolume", req.GetVolumeId(), req, func() error {
		id, target := req.GetVolumeId(), req.GetTargetPath()
		source := d.source(id)
		if path := req.GetStagingTargetPath(); path != "" {
			if d.staged[id] != path {
				d.forbid("publish of %s, which is not staged at %s", id, path)
			}
			source = path
		}
		if d.published[id] == nil {
			d.published[id] = map[string]bool{}
		}
		d.published[id][target] = true
		if req.GetVolumeCapability().GetBlock() != nil {
			file, err := os.OpenFile(target, os.O_CREATE, 0o600)
			if err != nil {
				return err
			}
			file.Close()
			return bind("/dev/null", target)
		}
		if err := os.Mkdir(target, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err // the parent is missing
		}
		return bind(source, target)
	})
}

func (d *strictDriver) NodeUnpublishVolume(ctx context.Context, req *csipb.NodeUnpublishVolumeRequest) (*csipb.NodeUnpublishVolumeResponse, error) {
	return &csipb.NodeUnpublishVolumeResponse{}, d.call(ctx, "NodeUnpublishVolume", req.GetVolumeId(), req, func() error {
		delete(d.published[req.GetVolumeId()], req.GetTargetPath())
		if err := unbind(req.GetTargetPath()); err != nil {
			return err
		}
		if err := os.Remove(req.GetTargetPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

func (d *strictDriver) NodeExpandVolume(ctx context.Context, req *csipb.NodeExpandVolumeRequest) (*csipb.NodeExpandVolumeResponse, error) {
	size := req.GetCapacityRange().GetRequiredBytes()
	return &csipb.NodeExpandVolumeResponse{CapacityBytes: size}, d.call(ctx, "NodeExpandVolume", req.GetVolumeId(), req, func() error {
		if d.stages() && d.staged[req.GetVolumeId()] == "" || !d.stages() && len(d.published[req.GetVolumeId()]) == 0 {
			d.forbid("expand of %s, which is neither staged nor published", req.GetVolumeId())
		}
		d.size[req.GetVolumeId()] = size
		return nil
	})
}

func (d *strictDriver) NodeGetVolumeStats(ctx context.Context, req *csipb.NodeGetVolumeStatsRequest) (*csipb.NodeGetVolumeStatsResponse, error) {
	answer := &csipb.NodeGetVolumeStatsResponse{Usage: []*csipb.VolumeUsage{
		{Unit: csipb.VolumeUsage_BYTES, Total: 100, Used: 30, Available: 70}, {Unit: csipb.VolumeUsage_INODES, Total: 10, Used: 3, Available: 7},
	}}
	// VolumeCondition as drivers of before its removal send it.
	answer.ProtoReflect().SetUnknown([]byte{2<<3 | 2, 7, 1 << 3, 1, 2<<3 | 2, 3, 'b', 'a', 'd'})
	return answer, d.call(ctx, "NodeGetVolumeStats", req.GetVolumeId(), req, func() error {
		if !d.published[req.GetVolumeId()][req.GetVolumePath()] {
			return status.Error(codes.NotFound, "not published there")
		}
		return nil
	})
}

func (d *strictDriver) NodeGetVolumeHealth(ctx context.Context, req *csipb.NodeGetVolumeHealthRequest) (*csipb.NodeGetVolumeHealthResponse, error) {
	return &csipb.NodeGetVolumeHealthResponse{VolumeHealth: &csipb.VolumeHealth{VolumeId: req.GetVolumeId(), HealthStatuses: []*csipb.VolumeHealth_VolumeHealthEntry{
		{Status: csipb.VolumeHealthErrorType_DEGRADED, Reason: "SlowPath", Message: "one path of two"}, {Status: 99, Reason: "Future"},
	}}}, d.call(ctx, "NodeGetVolumeHealth", req.GetVolumeId(), req, func() error { return nil })
}

func (d *strictDriver) NodeGetStorageHealth(context.Context, *csipb.NodeGetStorageHealthRequest) (*csipb.NodeGetStorageHealthResponse, error) {
	return &csipb.NodeGetStorageHealthResponse{BackendHealth: []*csipb.NodeGetStorageHealthResponse_StorageBackendHealth{
		{Status: csipb.StorageHealthErrorType_STORAGE_DEGRADED, Reason: "Slow"},
	}}, nil
}

func (d *strictDriver) NodeGetCapabilities(context.Context, *csipb.NodeGetCapabilitiesRequest) (*csipb.NodeGetCapabilitiesResponse, error) {
	answer := &csipb.NodeGetCapabilitiesResponse{}
	for _, c := range d.caps {
		answer.Capabilities = append(answer.Capabilities, &csipb.NodeServiceCapability{
			Type: &csipb.NodeServiceCapability_Rpc{Rpc: &csipb.NodeServiceCapability_RPC{Type: c}}})
	}
	return answer, nil
}

func (d *strictDriver) NodeGetInfo(context.Context, *csipb.NodeGetInfoRequest) (*csipb.NodeGetInfoResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.info, nil
}

// took are the calls since it was asked last.
func (d *strictDriver) took() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	calls := d.calls
	d.calls = nil
	return calls
}

func (d *strictDriver) wantCalls(t *testing.T, want ...string) {
	t.Helper()
	if got := d.took(); !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
}

func last[T proto.Message](d *strictDriver, method string) T {
	d.mu.Lock()
	defer d.mu.Unlock()
	got, _ := d.requests[method].(T)
	return got
}

// clean fails the test where the driver has anything left.
func (d *strictDriver) clean() {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.staged) > 0 {
		d.t.Errorf("still staged: %v", d.staged)
	}
	for id, targets := range d.published {
		if len(targets) > 0 {
			d.t.Errorf("%s is still published: %v", id, slices.Collect(maps.Keys(targets)))
		}
	}
}

const driverName = "disk.example"

var allCaps = []csipb.NodeServiceCapability_RPC_Type{
	csipb.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, csipb.NodeServiceCapability_RPC_GET_VOLUME_STATS,
	csipb.NodeServiceCapability_RPC_EXPAND_VOLUME, csipb.NodeServiceCapability_RPC_GET_VOLUME_HEALTH,
	csipb.NodeServiceCapability_RPC_GET_STORAGE_HEALTH, 4,
}

// startDriver serves it on a socket, with volumes of those names that hold a
// file each.
func startDriver(t testing.TB, caps []csipb.NodeServiceCapability_RPC_Type, volumes ...string) (*strictDriver, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "csi") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := &strictDriver{
		t: t, data: t.TempDir(), caps: caps,
		info:     &csipb.NodeGetInfoResponse{NodeId: "id-of-n1", MaxVolumesPerNode: 8, AccessibleTopology: &csipb.Topology{Segments: map[string]string{"disk.example/zone": "a"}}},
		inFlight: map[string]string{}, staged: map[string]string{}, published: map[string]map[string]bool{},
		requests: map[string]proto.Message{}, size: map[string]int64{},
	}
	for _, v := range volumes {
		if err := os.Mkdir(d.source(v), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d.source(v), "file"), []byte(v), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	socket := filepath.Join(dir, "csi.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	csipb.RegisterNodeServer(server, d)
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		served.Wait()
		for _, v := range volumes {
			if text, err := os.ReadFile(filepath.Join(d.source(v), "file")); err != nil || string(text) != v {
				t.Errorf("the data of %s is lost: %q, %v", v, text, err)
			}
		}
	})
	return d, socket
}

// wantNoMounts looks for what is mounted below the root directory.
func wantNoMounts(t testing.TB, root string) {
	t.Helper()
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mounts {
		t.Errorf("still mounted: %s", m.Mountpoint)
		_ = unix.Unmount(m.Mountpoint, unix.MNT_DETACH)
	}
}

func newPlugin(t testing.TB, root, socket string, parts csi.Parts, change ...func(*csi.Config)) *csi.Plugin {
	t.Helper()
	cfg := csi.Config{RootDir: root, NodeName: "n1"}
	for _, c := range change {
		c(&cfg)
	}
	p, err := csi.New(cfg, parts, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if socket != "" {
		register(t, p, socket)
	}
	return p
}

func register(t testing.TB, p *csi.Plugin, socket string) {
	t.Helper()
	if err := p.Register(t.Context(), csi.Registration{Name: driverName, Endpoint: socket, Versions: []string{"1.0.0"}, Socket: "reg"}); err != nil {
		t.Fatal(err)
	}
}

func tree(t testing.TB, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && path != dir {
			paths = append(paths, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(fmt.Errorf("walking %s: %w", dir, err))
	}
	return paths
}
