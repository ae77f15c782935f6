package wire

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume/csi"
	"nodekit.dev/volume/stats"
)

// CSIVolumes ask the drivers of volumes that are mounted. The default is a
// *csi.Plugin. Both methods may block until ctx ends, and answer csi.ErrBusy
// while another call for the volume is in flight.
type CSIVolumes interface {
	Stats(ctx context.Context, req csi.VolumeRequest) (csi.StatsResult, error)
	Health(ctx context.Context, req csi.VolumeRequest) ([]csi.HealthEntry, error)
}

// CSIReader has CSI drivers measure their volumes. What a driver can not tell is
// not known, and no error.
func CSIReader(volumes CSIVolumes) stats.Reader { return csiVolumeReader{volumes} }

type csiVolumeReader struct{ volumes CSIVolumes }

// busyRetry is how soon a volume is asked for again that something else was done
// with.
const busyRetry = 2 * time.Second

// Read asks for the usage, and then for the health, as there may be one call for a
// volume at a time.
func (r csiVolumeReader) Read(ctx context.Context, req stats.ReadRequest) (stats.ReadResult, error) {
	ask := csi.VolumeRequest{UID: string(req.Pod.UID), Source: req.Source}
	found, err := r.volumes.Stats(ctx, ask)
	if err != nil && !errors.Is(err, csi.ErrNotSupported) {
		return stats.ReadResult{}, unlessBusy(err)
	}
	result := stats.ReadResult{Usage: usageOf(found)}
	if c := found.Condition; c != nil && req.Condition {
		result.Condition = &stats.Condition{Abnormal: c.Abnormal, Message: c.Message}
	}
	if !req.Health {
		return result, nil
	}
	entries, err := r.volumes.Health(ctx, ask)
	switch {
	case errors.Is(err, csi.ErrNotSupported):
	case err != nil:
		return stats.ReadResult{}, unlessBusy(fmt.Errorf("health: %w", err))
	default:
		result.Health, result.HealthKnown = conditionsOf(entries), true
	}
	return result, nil
}

func unlessBusy(err error) error {
	if errors.Is(err, csi.ErrBusy) {
		return reasoned.New("", err).After(busyRetry)
	}
	return err
}

func usageOf(found csi.StatsResult) (u stats.Usage) {
	if b := found.Bytes; b != nil {
		u.Capacity, u.Used, u.Available = &b.Total, &b.Used, &b.Available
	}
	if i := found.Inodes; i != nil {
		u.Inodes, u.InodesUsed, u.InodesFree = &i.Total, &i.Used, &i.Available
	}
	return u
}

func conditionsOf(entries []csi.HealthEntry) []corev1.VolumeHealthCondition {
	out := make([]corev1.VolumeHealthCondition, 0, len(entries))
	for _, e := range entries {
		out = append(out, corev1.VolumeHealthCondition{
			Status: corev1.VolumeHealthStatusType(e.Status), Reason: cut(e.Reason, maxReason), Message: cut(e.Message, maxMessage),
		})
	}
	return out
}

// What the API takes of a condition, in bytes.
const (
	maxReason  = 256
	maxMessage = 1024
)

// cut holds a text to what the API takes, in bytes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && text[most]&0xC0 == 0x80 { // not within a character
		most--
	}
	return text[:most]
}

// CSIBackends ask drivers for what is behind them. The default is a *csi.Plugin.
type CSIBackends interface {
	// Registered must not block.
	Registered() []csi.Driver
	// StorageHealth may block until ctx ends.
	StorageHealth(ctx context.Context, driver string) ([]csi.BackendHealth, error)
}

// BackendReader has CSI drivers report the health of what is behind them.
func BackendReader(drivers CSIBackends) stats.BackendReader { return backendReader{drivers} }

type backendReader struct{ drivers CSIBackends }

// Drivers are those with the capability.
func (r backendReader) Drivers() (names []string) {
	for _, d := range r.drivers.Registered() {
		if d.Capabilities.StorageHealth {
			names = append(names, d.Name)
		}
	}
	return names
}

// StorageHealth asks one.
func (r backendReader) StorageHealth(ctx context.Context, driver string) ([]stats.BackendCondition, error) {
	found, err := r.drivers.StorageHealth(ctx, driver)
	out := make([]stats.BackendCondition, 0, len(found))
	for _, one := range found {
		out = append(out, stats.BackendCondition{Status: one.Status, Reason: cut(one.Reason, maxReason), Message: cut(one.Message, maxMessage)})
	}
	return out, err
}
