package wire

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/expand"
	"nodekit.dev/volume"
	"nodekit.dev/volume/csi"
	"nodekit.dev/volume/stats"
)

// csiGrower grows volumes of CSI drivers.
type csiGrower struct{ plugin *csi.Plugin }

func csiVolume(v volume.Recorded) csi.VolumeRequest {
	return csi.VolumeRequest{UID: v.UID, Source: v.Source}
}

// Grows says whether its driver can.
func (g csiGrower) Grows(v volume.Recorded) bool {
	for _, d := range g.plugin.Registered() {
		if d.Name == v.Driver() {
			return d.Capabilities.Expand
		}
	}
	return false
}

// SizeOf reads the notes.
func (g csiGrower) SizeOf(v volume.Recorded) (int64, error) { return g.plugin.SizeOf(csiVolume(v)) }

// Expand calls the driver.
func (g csiGrower) Expand(ctx context.Context, v volume.Recorded, size int64) (int64, error) {
	got, err := g.plugin.Expand(ctx, csi.ExpandRequest{VolumeRequest: csiVolume(v), Size: size})
	if errors.Is(err, csi.ErrNotSupported) {
		return 0, nil
	}
	return got.Size, classify(err)
}

// classify says what becomes of a growth that failed, by the driver's code, as
// CSI gives them a meaning.
func classify(err error) error {
	if err == nil {
		return nil
	}
	kind := expand.Transient
	switch status.Code(err) {
	case codes.InvalidArgument, codes.OutOfRange, codes.NotFound:
		kind = expand.Infeasible
	case codes.FailedPrecondition:
		kind = expand.InUse
	case codes.OK, codes.Canceled, codes.Unknown, codes.DeadlineExceeded, codes.Aborted, codes.Unavailable, codes.ResourceExhausted:
	case codes.Internal, codes.Unimplemented, codes.AlreadyExists, codes.PermissionDenied, codes.DataLoss, codes.Unauthenticated:
		kind = expand.Final
	}
	return &expand.Failure{Kind: kind, Err: err}
}

// csiReader measures volumes of CSI drivers.
type csiReader struct{ plugin *csi.Plugin }

// Read asks the driver for what it can tell; of another one nothing is known.
func (r csiReader) Read(ctx context.Context, req stats.ReadRequest) (stats.ReadResult, error) {
	var out stats.ReadResult
	v := csi.VolumeRequest{UID: string(req.Pod.UID), Source: req.Source}
	got, err := r.plugin.Stats(ctx, v)
	if err != nil && !errors.Is(err, csi.ErrNotSupported) {
		return out, err
	}
	if b := got.Bytes; b != nil {
		out.Used, out.Capacity, out.Available = &b.Used, &b.Total, &b.Available
	}
	if i := got.Inodes; i != nil {
		out.InodesUsed, out.Inodes, out.InodesFree = &i.Used, &i.Total, &i.Available
	}
	if c := got.Condition; c != nil && req.Condition {
		out.Condition = &stats.Condition{Abnormal: c.Abnormal, Message: c.Message}
	}
	if !req.Health {
		return out, nil
	}
	health, err := r.plugin.Health(ctx, v)
	switch {
	case errors.Is(err, csi.ErrNotSupported):
		return out, nil
	case err != nil:
		return out, err
	}
	out.HealthKnown = true
	for _, h := range health {
		out.Health = append(out.Health, corev1.VolumeHealthCondition{
			Status: corev1.VolumeHealthStatusType(h.Status), Reason: h.Reason, Message: h.Message,
		})
	}
	return out, nil
}
