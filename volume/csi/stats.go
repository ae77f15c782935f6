package csi

import (
	"context"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/encoding/protowire"
)

// StatsResult is what a driver says of a volume.
type StatsResult struct {
	Driver string
	// Bytes and Inodes are nil where the driver does not say.
	Bytes, Inodes *Usage
	// Condition is nil where it is not known, see Config.VolumeCondition.
	Condition *Condition
}

// Usage is how much there is of something.
type Usage struct{ Total, Used, Available int64 }

// Condition is what drivers said of a volume before CSI had its health.
type Condition struct {
	Abnormal bool
	Message  string
}

// Stats calls NodeGetVolumeStats for a volume that is published. It blocks until
// the driver answered, ctx at the latest, holds up no other call for the volume
// and waits for none: then it is [ErrBusy], or cancelled. It is [ErrNotSupported]
// where the driver does not do this.
func (p *Plugin) Stats(ctx context.Context, req VolumeRequest) (StatsResult, error) {
	var answer *csipb.NodeGetVolumeStatsResponse
	m, err := p.ask(ctx, req, "NodeGetVolumeStats", func(c Capabilities) bool { return c.Stats }, func(ctx context.Context, m *mounting) (err error) {
		answer, err = m.driver.node.NodeGetVolumeStats(ctx, &csipb.NodeGetVolumeStatsRequest{
			VolumeId: m.handle, VolumePath: m.place.target, StagingTargetPath: m.stage.path,
		})
		return err
	})
	if err != nil {
		return StatsResult{}, err
	}
	result := StatsResult{Driver: m.driver.Name}
	for _, u := range answer.GetUsage() {
		usage := &Usage{u.GetTotal(), u.GetUsed(), u.GetAvailable()}
		switch u.GetUnit() {
		case csipb.VolumeUsage_BYTES:
			result.Bytes = usage
		case csipb.VolumeUsage_INODES:
			result.Inodes = usage
		case csipb.VolumeUsage_UNKNOWN:
		}
	}
	if p.cfg.VolumeCondition && m.driver.Capabilities.VolumeCondition {
		result.Condition = condition(answer.ProtoReflect().GetUnknown())
	}
	return result, nil
}

// ask makes a call that gives way to others.
func (p *Plugin) ask(
	ctx context.Context, req VolumeRequest, method string, can func(Capabilities) bool, do func(context.Context, *mounting) error,
) (*mounting, error) {
	m, err := p.mounted(req)
	if err != nil {
		return nil, err
	}
	if !can(m.driver.Capabilities) {
		return nil, ErrNotSupported
	}
	ctx, release, err := p.locks.try(ctx, m.volumeKey)
	if err != nil {
		return nil, err
	}
	defer release()
	return m, p.call(ctx, m.driver, method, func(ctx context.Context) error { return do(ctx, m) })
}

// condition reads field 2 of the answer, which was VolumeCondition: abnormal as
// its field 1, a message as field 2.
func condition(unknown []byte) *Condition {
	var found *Condition
	fields(unknown, func(number protowire.Number, value []byte, _ uint64) {
		if number != 2 || value == nil {
			return
		}
		found = &Condition{}
		fields(value, func(number protowire.Number, text []byte, flag uint64) {
			switch number {
			case 1:
				found.Abnormal = flag != 0
			case 2:
				found.Message = string(text)
			}
		})
	})
	return found
}

// fields goes through a message: text or nested ones as bytes, numbers as such.
func fields(message []byte, each func(number protowire.Number, value []byte, varint uint64)) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		message = message[n:]
		var value []byte
		var varint uint64
		switch kind {
		case protowire.BytesType:
			value, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			varint, n = protowire.ConsumeVarint(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return
		}
		message = message[n:]
		each(number, value, varint)
	}
}
