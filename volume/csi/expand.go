package csi

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ErrNotSupported says that the driver can not do what is asked.
var ErrNotSupported = errors.New("the CSI driver does not support this on nodes")

// ExpandRequest asks for a mounted volume to be as large as Size says, in bytes.
type ExpandRequest struct {
	VolumeRequest
	Size int64
}

// ExpandResult says how large it is now, in bytes.
type ExpandResult struct{ Size int64 }

// Expand calls NodeExpandVolume for a volume that is published to that pod,
// which grows it for all pods of this node; once for each volume is enough. It
// blocks until the driver is done, ctx at the latest, and waits for other calls
// for the volume. Idempotent: what this node has grown already is not grown
// again. It is [ErrNotSupported] where the driver does not
// do this; other errors are the driver's, which google.golang.org/grpc/status
// tells the codes of.
func (p *Plugin) Expand(ctx context.Context, req ExpandRequest) (ExpandResult, error) {
	m, err := p.mounted(req.VolumeRequest)
	if err != nil {
		return ExpandResult{}, err
	}
	if !m.driver.Capabilities.Expand {
		return ExpandResult{}, ErrNotSupported
	}
	if m.expandSecret, err = p.secret(ctx, m.uid, m.described.expandSecret); err != nil {
		return ExpandResult{}, err
	}
	release, err := p.locks.take(ctx, m.volumeKey)
	if err != nil {
		return ExpandResult{}, fmt.Errorf("waiting for other calls for volume %s: %w", m.handle, err)
	}
	defer release()
	boot, err := p.boot()
	if err != nil {
		return ExpandResult{}, err
	}
	// Only now that no other call is made it is sure that it is still there.
	if r, ok, err := readRecord(m.place.record); err != nil || !ok || r.state() != published && r.state() != "" {
		return ExpandResult{}, errors.Join(fmt.Errorf("volume %s is not published to pod %s", m.name, m.uid), err)
	} else if is, err := m.place.isPublished(r, boot); err != nil || !is {
		return ExpandResult{}, errors.Join(fmt.Errorf("volume %s is not published to pod %s", m.name, m.uid), err)
	}
	// Whoever mounted it meanwhile may have grown it.
	if r, ok, err := readRecord(m.notes()); err == nil && ok && size(r) >= req.Size {
		return ExpandResult{Size: size(r)}, nil
	}
	m.size = req.Size
	size, err := p.grow(ctx, m, false)
	return ExpandResult{Size: size}, err
}

// mounted is for a volume that is published: what calls for it need.
func (p *Plugin) mounted(req VolumeRequest) (*mounting, error) {
	v, err := describe(req.UID, req.Claim.Namespace, req.Source)
	if err != nil {
		return nil, err
	}
	m := &mounting{described: v, uid: req.UID, source: req.Source, place: p.layout.placeOf(req.UID, v.name, v.block)}
	if m.driver, err = p.driver(v.driver, ""); err != nil {
		return nil, err
	}
	if m.driver.Capabilities.Stage && !v.ephemeral() {
		m.stage = p.layout.staging(v)
	}
	return m, nil
}

// notes is the record that knows how large the node has made the volume.
func (m *mounting) notes() string {
	if m.stage.path != "" {
		return m.stage.record
	}
	return m.place.record
}

// grows says that the volume may have to be grown before the pod gets it.
func (m *mounting) grows() bool {
	return m.driver.Capabilities.Expand && !m.readOnly && m.claimSize > 0 && m.size > m.claimSize
}

// growMounting grows a volume that was just published and whose claim is smaller,
// unless this node has done so. That a driver can not grow it does not keep the pod from it.
func (p *Plugin) growMounting(ctx context.Context, m *mounting) error {
	if !m.grows() {
		return nil
	}
	if r, ok, err := readRecord(m.notes()); err == nil && ok && size(r) >= m.size {
		return nil
	}
	_, err := p.grow(ctx, m, true)
	switch status.Code(err) {
	case codes.InvalidArgument, codes.OutOfRange, codes.FailedPrecondition, codes.Unimplemented, codes.NotFound:
		p.log.WarnContext(ctx, "a volume is mounted smaller than it should be", "uid", m.uid, "volume", m.name, "err", err)
		return nil
	}
	return err
}

// grow calls NodeExpandVolume and notes the size. The lock is held.
func (p *Plugin) grow(ctx context.Context, m *mounting, mountingIt bool) (int64, error) {
	var answer *csipb.NodeExpandVolumeResponse
	start := time.Now()
	err := p.call(ctx, m.driver, "NodeExpandVolume", func(ctx context.Context) (err error) {
		answer, err = m.driver.node.NodeExpandVolume(ctx, &csipb.NodeExpandVolumeRequest{
			VolumeId: m.handle, VolumePath: m.place.target, StagingTargetPath: m.stage.path,
			CapacityRange:    &csipb.CapacityRange{RequiredBytes: m.size},
			VolumeCapability: capability(m.described, m.driver.Capabilities, m.group, m.label),
			Secrets:          m.expandSecret,
		})
		return err
	})
	now := answer.GetCapacityBytes()
	if err == nil && now == 0 {
		now = m.size
	}
	if p.cfg.Observer.Expanded != nil {
		p.cfg.Observer.Expanded(Expansion{VolumeRequest: VolumeRequest{m.uid, m.source}, Size: now, Mounting: mountingIt, Took: time.Since(start), Err: err})
	}
	if err != nil {
		return 0, err
	}
	if r, ok, err := readRecord(m.notes()); err == nil && ok {
		return now, r.with(keySize, strconv.FormatInt(m.size, 10)).write(m.notes())
	}
	return now, nil
}

// size is what the node grew the volume to, 0: it did not.
func size(r record) int64 {
	n, err := strconv.ParseInt(r[keySize], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// SizeOf is how large this node made the volume, or was told that it is when it
// mounted it first, in bytes, as its notes on the host say; 0: nobody knows.
func (p *Plugin) SizeOf(req VolumeRequest) (int64, error) {
	m, err := p.mounted(req)
	if err != nil {
		return 0, err
	}
	r, ok, err := readRecord(m.notes())
	if err != nil || !ok {
		return 0, err
	}
	return size(r), nil
}
