package csi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"

	"nodekit.dev/internal/beneath"
	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
)

// unstageTime is how long the end of a pod waits for its volume to be unstaged;
// then Run goes on with that.
const unstageTime = 10 * time.Second

// Unmount implements [volume.Plugin]: it unpublishes the volume, and unstages it
// if no other pod of this node uses it.
func (p *Plugin) Unmount(ctx context.Context, req volume.UnmountRequest) error {
	place := p.layout.place(req.UID, req.Volume, req.Dir, req.MetaDir, p.layout.isDevice(req.UID, req.Volume, req.Dir))
	r, ok, err := p.recordOf(place, req)
	if err != nil && !errors.Is(err, errDamaged) {
		return err
	}
	if !ok {
		return p.removeUnknown(ctx, place, req, err)
	}
	release, err := p.locks.take(ctx, r.key())
	if err != nil {
		return fmt.Errorf("waiting for other calls for volume %s: %w", r[keyHandle], err)
	}
	defer release()
	if r.state() != unpublished {
		if r.state() != preparing {
			if err := p.unpublish(ctx, place, r, req); err != nil {
				return err
			}
		}
		if err := r.with(keyState, unpublished).write(place.record); err != nil {
			return err
		}
	}
	if r[keyMode] != string(storagev1.VolumeLifecycleEphemeral) {
		p.letGo(ctx, r.key(), p.stagingOf(r, place, req))
	}
	return p.removePlace(ctx, place, req)
}

// recordOf also reads what the stock kubelet notes of block volumes.
func (p *Plugin) recordOf(pl place, req volume.UnmountRequest) (record, bool, error) {
	r, ok, err := readRecord(pl.record)
	if ok || !pl.block {
		return r, ok, err
	}
	r, ok, err = readRecord(p.layout.deviceStaging(req.Volume).record)
	return r.with(keyState, "", keySize, ""), ok, err
}

func (p *Plugin) stagingOf(r record, pl place, req volume.UnmountRequest) staging {
	if pl.block {
		return p.layout.deviceStaging(req.Volume)
	}
	return p.layout.mountStaging(r.key())
}

// removeUnknown is for a directory of which nobody knows whose volume it is:
// its mount never began, or its notes are lost.
func (p *Plugin) removeUnknown(ctx context.Context, pl place, req volume.UnmountRequest, damaged error) error {
	for _, point := range req.Mounts {
		if point != pl.target {
			return &beneath.MountError{Path: point}
		}
		p.log.WarnContext(ctx, "unmounting a CSI volume without its driver: what it is was lost", "uid", req.UID, "volume", req.Volume, "path", point, "err", damaged)
		if err := (volume.HostMounter{}).Unmount(point); err != nil {
			return err
		}
	}
	return p.removePlace(ctx, pl, req)
}

// unpublish calls NodeUnpublishVolume and takes away what the driver left.
func (p *Plugin) unpublish(ctx context.Context, pl place, r record, req volume.UnmountRequest) error {
	for _, point := range req.Mounts {
		if point != pl.target {
			return &beneath.MountError{Path: point}
		}
	}
	d, err := p.driver(r[keyDriver], req.UID)
	if err != nil {
		return reasoned.New("FailedUnMount", err).After(unmountRetry)
	}
	// From now on nobody may take it for published.
	if err := r.with(keyState, publishing).write(pl.record); err != nil {
		return err
	}
	err = p.call(ctx, d, "NodeUnpublishVolume", func(ctx context.Context) error {
		_, err := d.node.NodeUnpublishVolume(ctx, &csipb.NodeUnpublishVolumeRequest{VolumeId: r[keyHandle], TargetPath: pl.target})
		return err
	})
	if err != nil {
		return err
	}
	return removeEmpty(pl.target)
}

// removePlace takes the pod's directory of the volume away.
func (p *Plugin) removePlace(ctx context.Context, pl place, req volume.UnmountRequest) error {
	if !pl.block {
		return volume.RemoveDir(ctx, pl.dir)
	}
	if err := removeEmpty(pl.target); err != nil {
		return err
	}
	removeParents(filepath.Dir(pl.target), p.layout.base())
	if err := beneath.RemoveAll(ctx, req.MetaDir); err != nil {
		return err
	}
	if err := os.Remove(pl.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// letGo unstages a volume that no pod uses any more. What fails is left to Run.
// The lock of the volume is held.
func (p *Plugin) letGo(ctx context.Context, key volumeKey, s staging) {
	limited, cancel := context.WithTimeout(ctx, unstageTime)
	defer cancel()
	if err := p.unstage(limited, key, s); err != nil {
		p.log.WarnContext(ctx, "a volume could not be unstaged and is tried again", "driver", key.driver, "volume", key.handle, "err", err)
		p.undone.add(key, s, err)
	}
}

// unstage calls NodeUnstageVolume if the volume is staged and nobody uses it,
// and takes away what is noted of it. The lock is held.
func (p *Plugin) unstage(ctx context.Context, key volumeKey, s staging) error {
	r, ok, err := readRecord(s.record)
	if err != nil || !ok || r.key() != key {
		return err
	}
	used, err := p.used(key)
	if err != nil || used {
		return err
	}
	d, err := p.driver(key.driver, "")
	if err != nil {
		return err
	}
	if d.Capabilities.Stage {
		// From now on nobody may take it for staged.
		if err := r.with(keyState, isStaging).write(s.record); err != nil {
			return err
		}
		err := p.call(ctx, d, "NodeUnstageVolume", func(ctx context.Context) error {
			_, err := d.node.NodeUnstageVolume(ctx, &csipb.NodeUnstageVolumeRequest{VolumeId: key.handle, StagingTargetPath: s.path})
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := removeEmpty(s.path); err != nil {
		return err
	}
	if err := os.Remove(s.record); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	removeParents(filepath.Dir(s.path), p.layout.base())
	removeParents(filepath.Dir(s.record), p.layout.base())
	if p.cfg.Observer.Unstaged != nil {
		p.cfg.Observer.Unstaged(key.driver, key.handle)
	}
	return nil
}
