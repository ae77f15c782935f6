package wire

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"nodekit.dev/node/expand"
	"nodekit.dev/volume"
	"nodekit.dev/volume/csi"
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
