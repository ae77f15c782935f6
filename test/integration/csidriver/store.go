package csidriver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	csi "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Volume is what the controller of a real driver would have made.
type Volume struct {
	// Size is in bytes. xfs needs 300 MiB at least; the file is sparse.
	Size int64 `json:"size"`
	// FSType is what is made on a volume that is blank when it is staged, unless
	// the call says: "xfs" or "ext4" (default); "dir" is a plain folder, which
	// nodes can share.
	FSType string `json:"fsType"`

	Abnormal  bool   `json:"abnormal,omitempty"`
	Condition string `json:"condition,omitempty"`
}

// store keeps volumes as files: ID.json says what they are, ID.img is what is
// in them.
type store struct {
	dir   string
	locks sync.Map // *sync.Mutex by volume
}

// lock keeps work on one volume apart.
func (s *store) lock(id string) (unlock func()) {
	one, _ := s.locks.LoadOrStore(id, &sync.Mutex{})
	mu, _ := one.(*sync.Mutex)
	mu.Lock()
	return mu.Unlock
}

func (s *store) path(id, ending string) string { return filepath.Join(s.dir, "volumes", id+ending) }
func (s *store) image(id string) string        { return s.path(id, ".img") }
func (s *store) inline(id string) string       { return filepath.Join(s.dir, "inline", id) }

func (s *store) read(id string) (v Volume, err error) {
	text, err := os.ReadFile(s.path(id, ".json"))
	if errors.Is(err, os.ErrNotExist) {
		return v, status.Errorf(codes.NotFound, "there is no volume %q", id)
	}
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	return v, err
}

func (s *store) write(id string, v Volume) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(s.path(id, ".json"), text, 0o600)
}

// Create makes a volume, as the driver's controller would.
func (d *Driver) Create(id string, v Volume) error {
	if v.FSType == "" {
		v.FSType = "ext4"
	}
	defer d.volumes.lock(id)()
	if v.FSType == "dir" {
		if err := os.MkdirAll(d.volumes.path(id, ".dir"), 0o755); err != nil {
			return err
		}
	} else if err := resize(d.volumes.image(id), v.Size); err != nil {
		return err
	}
	return d.volumes.write(id, v)
}

// Delete removes a volume. It must not be staged.
func (d *Driver) Delete(id string) error {
	defer d.volumes.lock(id)()
	device, err := attachedTo(d.volumes.image(id))
	if err != nil || device != "" {
		return errors.Join(err, fmt.Errorf("csidriver: volume %q is still attached as %q", id, device))
	}
	return errors.Join(os.RemoveAll(d.volumes.image(id)), os.RemoveAll(d.volumes.path(id, ".dir")), os.RemoveAll(d.volumes.path(id, ".json")))
}

// SetCondition says how the volume is from now on.
func (d *Driver) SetCondition(id string, abnormal bool, message string) error {
	defer d.volumes.lock(id)()
	v, err := d.volumes.read(id)
	if err != nil {
		return err
	}
	v.Abnormal, v.Condition = abnormal, message
	return d.volumes.write(id, v)
}

func (s *store) condition(id string) (abnormal bool, message string) {
	if v, err := s.read(id); err == nil && v.Condition != "" {
		return v.Abnormal, v.Condition
	}
	return false, "all is well"
}

// ReadFile reads a file of a volume that is not staged, from its image.
func (d *Driver) ReadFile(ctx context.Context, id, name string) (text []byte, err error) {
	defer d.volumes.lock(id)()
	v, err := d.volumes.read(id)
	if err != nil {
		return nil, err
	}
	if v.FSType == "dir" {
		return os.ReadFile(filepath.Join(d.volumes.path(id, ".dir"), name))
	}
	device, err := attach(ctx, d.volumes.image(id))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, detach(ctx, d.volumes.image(id))) }()
	dir, err := os.MkdirTemp(d.cfg.Dir, "read-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.Remove(dir)) }()
	if _, err := run(ctx, "mount", device, dir); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unix.Unmount(dir, 0)) }()
	return os.ReadFile(filepath.Join(dir, name))
}

// usage is what NodeGetVolumeStats tells: a file system's, or the size of a device.
func (s *store) usage(id, path string) ([]*csi.VolumeUsage, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "volume %q: %v", id, err)
	}
	if !info.IsDir() {
		v, err := s.read(id)
		return []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: v.Size}}, err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return nil, err
	}
	block := fs.Bsize
	return []*csi.VolumeUsage{
		{
			Unit: csi.VolumeUsage_BYTES, Total: int64(fs.Blocks) * block,
			Available: int64(fs.Bavail) * block, Used: int64(fs.Blocks-fs.Bfree) * block,
		},
		{
			Unit: csi.VolumeUsage_INODES, Total: int64(fs.Files),
			Available: int64(fs.Ffree), Used: int64(fs.Files - fs.Ffree),
		},
	}, nil
}
