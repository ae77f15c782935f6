package wire

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
	"nodekit.dev/volume/csi"
	"nodekit.dev/volume/stats"
)

// drivers answer what they are set to.
type drivers struct {
	stats     csi.StatsResult
	health    []csi.HealthEntry
	err, hErr error
	asked     []string
}

func (d *drivers) Stats(_ context.Context, req csi.VolumeRequest) (csi.StatsResult, error) {
	d.asked = append(d.asked, "stats of "+req.UID+"/"+req.Volume.Name)
	return d.stats, d.err
}

func (d *drivers) Health(context.Context, csi.VolumeRequest) ([]csi.HealthEntry, error) {
	d.asked = append(d.asked, "health")
	return d.health, d.hErr
}

func TestCSIReader(t *testing.T) {
	pod := &corev1.Pod{}
	pod.UID = "u"
	req := stats.ReadRequest{Pod: pod, Place: volume.Place{Source: volume.Source{Volume: corev1.Volume{Name: "v"}}}, Condition: true, Health: true}
	d := &drivers{
		stats:  csi.StatsResult{Bytes: &csi.Usage{Total: 100, Used: 40, Available: 60}, Condition: &csi.Condition{Abnormal: true, Message: "bad"}},
		health: []csi.HealthEntry{{Status: "Degraded", Reason: "R", Message: strings.Repeat("ä", 1000)}},
	}
	got, err := CSIReader(d).Read(t.Context(), req)
	if err != nil || *got.Capacity != 100 || *got.Used != 40 || *got.Available != 60 || got.Inodes != nil || !got.Condition.Abnormal || !got.HealthKnown {
		t.Fatalf("%+v, %v", got, err)
	}
	if h := got.Health[0]; h.Status != corev1.VolumeHealthDegraded || h.Reason != "R" || h.Message != strings.Repeat("ä", 512) {
		t.Errorf("%+v", h)
	}
	if strings.Join(d.asked, ", ") != "stats of u/v, health" {
		t.Errorf("asked %q", d.asked)
	}

	plain := req
	plain.Condition, plain.Health = false, false
	if got, err := CSIReader(d).Read(t.Context(), plain); err != nil || got.Condition != nil || got.HealthKnown || len(d.asked) != 3 {
		t.Errorf("not asked for: %+v, %v, %q", got, err, d.asked)
	}
	if got, err := CSIReader(&drivers{err: csi.ErrNotSupported, hErr: csi.ErrNotSupported}).Read(t.Context(), req); err != nil || got.Used != nil || got.HealthKnown {
		t.Errorf("a driver that can not: %+v, %v", got, err)
	}
	for _, d := range []*drivers{{err: csi.ErrBusy}, {hErr: csi.ErrBusy}} {
		if _, err := CSIReader(d).Read(t.Context(), req); reasoned.RetryAfter(err, 0) != busyRetry || !errors.Is(err, csi.ErrBusy) {
			t.Errorf("busy: %v", err)
		}
	}
	away := errors.New("away")
	for _, d := range []*drivers{{err: away}, {hErr: away}} {
		if _, err := CSIReader(d).Read(t.Context(), req); !errors.Is(err, away) || reasoned.RetryAfter(err, 0) != 0 {
			t.Errorf("away: %v", err)
		}
	}
}

func (d *drivers) Registered() []csi.Driver {
	return []csi.Driver{{Name: "can", Capabilities: csi.Capabilities{StorageHealth: true}}, {Name: "can-not"}}
}

func (d *drivers) StorageHealth(context.Context, string) ([]csi.BackendHealth, error) {
	return []csi.BackendHealth{{Status: "StorageDegraded", Reason: strings.Repeat("R", 300)}}, d.err
}

func TestBackendReader(t *testing.T) {
	r := BackendReader(&drivers{})
	if names := r.Drivers(); len(names) != 1 || names[0] != "can" {
		t.Errorf("drivers %q", names)
	}
	got, err := r.StorageHealth(t.Context(), "can")
	if err != nil || len(got) != 1 || got[0].Status != "StorageDegraded" || len(got[0].Reason) != maxReason {
		t.Errorf("%+v, %v", got, err)
	}
}
