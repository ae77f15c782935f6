package wire

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"nodekit.dev/node/expand"
	"nodekit.dev/volume/csi"
)

// bus answers the calls that a driver gets when it registers.
type bus struct{ asked []string }

func (b *bus) Connect(driver, _ string) (grpc.ClientConnInterface, func() error, error) {
	b.asked = append(b.asked, driver)
	return b, func() error { return nil }, nil
}

func (b *bus) Invoke(_ context.Context, method string, _, reply any, _ ...grpc.CallOption) error {
	b.asked = append(b.asked, method)
	if info, ok := reply.(*csipb.NodeGetInfoResponse); ok {
		info.NodeId, info.MaxVolumesPerNode = "slot-1", 4
	}
	return nil
}

func (b *bus) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.New("no streams")
}

// Drivers may be reached over a vendor's own bus, and are told of to those who
// keep the cluster's objects.
func TestDriversOnABus(t *testing.T) {
	cfg := Default()
	cfg.RootDir, cfg.NodeName, cfg.Log = t.TempDir(), "n1", slog.New(slog.DiscardHandler)
	cfg.CSI.RootDir, cfg.CSI.NodeName = cfg.RootDir, cfg.NodeName
	contents, b := &Contents{}, &bus{}
	drivers := contents.CSIDrivers()
	if drivers.Changed() != nil || len(drivers.Registered()) != 0 {
		t.Error("there are drivers before there is a plugin")
	}
	plugin, runs, err := CSI(cfg, ClusterParts{}, b, contents)
	if err != nil || len(runs) != 1 {
		t.Fatalf("%v, %v", runs, err)
	}
	if err := plugin.Register(t.Context(), csi.Registration{Name: "bus.example", Versions: []string{"1.12.0"}}); err != nil {
		t.Fatal(err)
	}
	if got := drivers.Registered(); len(got) != 1 || got[0].NodeID != "slot-1" || got[0].MaxVolumes != 4 || len(b.asked) != 3 {
		t.Errorf("registered %+v over %v", got, b.asked)
	}
	if err := drivers.Refresh(t.Context(), "bus.example"); err != nil || len(b.asked) != 5 {
		t.Errorf("%v, %v", b.asked, err)
	}
	full := ""
	contents.OnCSIExhausted(func(driver string) { full = driver })
	contents.csiObserver(csi.Observer{}).Call(csi.Call{Driver: "bus.example", Code: codes.ResourceExhausted.String()})
	if full != "bus.example" {
		t.Errorf("full: %q", full)
	}

	// What is staged must not be detached, although no pod uses it.
	dir := filepath.Join(cfg.RootDir, "plugins/kubernetes.io/csi/bus.example/0123")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "vol_data.json"), []byte(`{"driverName":"bus.example","volumeHandle":"v","nodekit.dev/attached":"true"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	held, err := contents.Held()
	if err != nil || len(held) != 1 || !held[0].Attached || held[0].PersistentVolume.Spec.CSI.VolumeHandle != "v" {
		t.Errorf("held %+v, %v", held, err)
	}
}

func TestGrowthThatFails(t *testing.T) {
	for code, want := range map[codes.Code]expand.FailureKind{
		codes.InvalidArgument: expand.Infeasible, codes.OutOfRange: expand.Infeasible, codes.FailedPrecondition: expand.InUse,
		codes.Internal: expand.Final, codes.Unavailable: expand.Transient, codes.DeadlineExceeded: expand.Transient,
	} {
		var failure *expand.Failure
		if err := classify(status.Error(code, "x")); !errors.As(err, &failure) || failure.Kind != want {
			t.Errorf("%v: %v", code, err)
		}
	}
	if classify(nil) != nil {
		t.Error("no failure is one")
	}
}
