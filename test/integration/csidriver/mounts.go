package csidriver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	csi "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// stage attaches the image, makes a file system where there is none, and mounts it.
func (s *store) stage(ctx context.Context, id, staging string, capability *csi.VolumeCapability) error {
	v, err := s.read(id)
	if err != nil {
		return err
	}
	if v.FSType == "dir" {
		return bind(s.path(id, ".dir"), staging, false)
	}
	device, err := attach(ctx, s.image(id))
	if err != nil || capability.GetBlock() != nil {
		return err
	}
	if mounted, err := mountinfo.Mounted(staging); err != nil || mounted {
		return err
	}
	fsType := capability.GetMount().GetFsType()
	if fsType == "" {
		fsType = v.FSType
	}
	if err := format(ctx, device, fsType); err != nil {
		return err
	}
	args := []string{"-t", fsType}
	if flags := capability.GetMount().GetMountFlags(); len(flags) > 0 {
		args = append(args, "-o", strings.Join(flags, ","))
	}
	if _, err := run(ctx, "mount", append(args, device, staging)...); err != nil {
		return err
	}
	return own(staging, capability.GetMount().GetVolumeMountGroup())
}

// own gives the root of a file system to the group.
func own(dir, group string) error {
	if group == "" {
		return nil
	}
	gid, err := strconv.Atoi(group)
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "volume_mount_group: %v", err)
	}
	return errors.Join(os.Chown(dir, -1, gid), os.Chmod(dir, 0o775|os.ModeSetgid))
}

// publication is what NodePublishVolume asks for.
type publication struct {
	id, staging, target      string
	capability               *csi.VolumeCapability
	readOnly, inline, stages bool
}

// publish binds a staged volume, its device, or a folder of an inline volume on
// the target.
func (s *store) publish(ctx context.Context, p publication) error {
	source := p.staging
	readOnly := p.readOnly || p.capability.GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	switch {
	case p.inline:
		source = s.inline(p.id)
		if err := os.MkdirAll(source, 0o755); err != nil {
			return err
		}
		if err := own(source, p.capability.GetMount().GetVolumeMountGroup()); err != nil {
			return err
		}
	case p.capability.GetBlock() != nil:
		return s.publishDevice(ctx, p)
	case !p.stages:
		v, err := s.read(p.id)
		if err != nil {
			return err
		}
		if v.FSType != "dir" {
			return status.Error(codes.FailedPrecondition, "only volumes of fsType dir go without stage")
		}
		source = s.path(p.id, ".dir")
	}
	if err := os.MkdirAll(p.target, 0o750); err != nil {
		return err
	}
	return bind(source, p.target, readOnly)
}

func (s *store) publishDevice(ctx context.Context, p publication) error {
	device, err := attach(ctx, s.image(p.id))
	if err != nil {
		return err
	}
	file, err := os.OpenFile(p.target, os.O_CREATE|os.O_RDONLY, 0o660)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return bind(device, p.target, p.readOnly)
}

// bind mounts source on target, unless something is mounted there.
func bind(source, target string, readOnly bool) error {
	if mounted, err := mountinfo.Mounted(target); err != nil || mounted {
		return err
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s on %s: %w", source, target, err)
	}
	if !readOnly {
		return nil
	}
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return errors.Join(fmt.Errorf("make %s read-only: %w", target, err), unix.Unmount(target, 0))
	}
	return nil
}

// unpublish takes the target away, and what was inline with it.
func (s *store) unpublish(id, target string) error {
	if err := unmount(target); err != nil {
		return err
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.RemoveAll(s.inline(id))
}

// unstage unmounts a volume and detaches its device.
func (s *store) unstage(ctx context.Context, id, staging string) error {
	if err := unmount(staging); err != nil {
		return err
	}
	return detach(ctx, s.image(id))
}

func unmount(path string) error {
	mounted, err := mountinfo.Mounted(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && !mounted {
		return nil
	}
	if err != nil {
		return err
	}
	if err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW); err != nil {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	return nil
}

// grow makes a volume as big as asked for, and its file system as big as that.
func (s *store) grow(ctx context.Context, id, path string, size int64) (int64, error) {
	v, err := s.read(id)
	if err != nil {
		return 0, err
	}
	if v.Size = max(v.Size, size); v.FSType == "dir" {
		return v.Size, s.write(id, v)
	}
	if err := resize(s.image(id), v.Size); err != nil {
		return 0, err
	}
	device, err := attach(ctx, s.image(id))
	if err != nil {
		return 0, err
	}
	if _, err := run(ctx, "losetup", "-c", device); err != nil {
		return 0, err
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return v.Size, errors.Join(err, s.write(id, v)) // a device
	}
	switch fsType, err := fsTypeOf(ctx, device); {
	case err != nil:
		return 0, err
	case fsType == "xfs":
		_, err = run(ctx, "xfs_growfs", path)
		return v.Size, errors.Join(err, s.write(id, v))
	default:
		_, err = run(ctx, "resize2fs", device)
		return v.Size, errors.Join(err, s.write(id, v))
	}
}

// Leaks are the devices, mounts and folders of this driver that are still there,
// and what the agent would still have to undo.
func (d *Driver) Leaks() (found []string) {
	found = d.ledger.left()
	devices, err := attachedBelow(d.cfg.Dir)
	if err != nil {
		return append(found, err.Error())
	}
	for _, device := range devices {
		found = append(found, fmt.Sprintf("%s is attached to %s", device.name, device.file))
	}
	paths := map[string]bool{}
	for _, c := range d.Calls("", Stage, Publish) {
		paths[c.Staging], paths[c.Target] = true, true
	}
	delete(paths, "")
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		return append(found, err.Error())
	}
	for _, m := range mounts {
		ours := slices.ContainsFunc(devices, func(device loop) bool { return device.name == m.Source })
		if ours || paths[m.Mountpoint] {
			found = append(found, fmt.Sprintf("%s is mounted on %s", m.Source, m.Mountpoint))
		}
	}
	for _, c := range d.Calls("", Publish) {
		if _, err := os.Lstat(c.Target); c.Target != "" && !errors.Is(err, os.ErrNotExist) {
			found = append(found, "the target "+c.Target+" is still there")
		}
	}
	inline, err := os.ReadDir(d.volumes.inline(""))
	if err != nil {
		found = append(found, err.Error())
	}
	for _, entry := range inline {
		found = append(found, "the inline volume "+entry.Name()+" is still there")
	}
	slices.Sort(found)
	return slices.Compact(found)
}
