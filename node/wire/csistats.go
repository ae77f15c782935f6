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
func CSIReader(volumes CSIVolumes) stats.Reader { return csiReader{volumes} }

type csiReader struct{ volumes CSIVolumes }

// busyRetry is how soon a volume is asked for again that something else was done
// with.
const busyRetry = 2 * time.Second

// Read asks for the usage, and then for the health, as there may be one call for a
// volume at a time.
func (r csiReader) Read(ctx context.Context, req stats.ReadRequest) (stats.ReadResult, error) {
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
			Status: corev1.VolumeHealthStatusType(e.Status), Reason: cut(e.Reason, 256), Message: cut(e.Message, 1024),
		})
	}
	return out
}

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
