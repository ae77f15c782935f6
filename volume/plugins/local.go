package plugins

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"nodekit.dev/internal/beneath"
	"nodekit.dev/volume"
)

// Local gives local PersistentVolumes: a directory of the node, bind-mounted; a
// block device, with a file system that is made where there is none; and, with
// volumeMode Block, the device itself. Use [NewLocal].
type Local struct {
	mounts Mounts

	mu      sync.Mutex
	devices map[string]chan struct{} // by path; who holds the token formats or mounts it
}

// NewLocal makes the plugin; nil means [HostMounts].
func NewLocal(mounts Mounts) *Local {
	if mounts == nil {
		mounts = HostMounts{}
	}
	return &Local{mounts: mounts, devices: map[string]chan struct{}{}}
}

// Name implements [volume.Plugin].
func (*Local) Name() string { return "kubernetes.io/local-volume" }

// Supports implements [volume.Plugin].
func (*Local) Supports(s volume.Source) bool {
	return s.PersistentVolume != nil && s.PersistentVolume.Spec.Local != nil
}

// Mount mounts the volume. The files are given to the pod's fsGroup where no
// other pod has the volume already.
func (p *Local) Mount(ctx context.Context, req volume.MountRequest) (volume.MountResult, error) {
	path := req.PersistentVolume.Spec.Local.Path
	if slices.Contains(strings.Split(path, "/"), "..") {
		return volume.MountResult{}, fmt.Errorf("invalid path: %s must not contain '..'", path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return volume.MountResult{}, err
	}
	if req.Block() {
		return volume.MountResult{HostPath: req.Dir}, linkDevice(path, info, req.Dir)
	}
	here, _, err := mountsOn(p.mounts, req.Dir)
	if err != nil {
		return volume.MountResult{}, err
	}
	if len(here) == 0 || !marked(req.MetaDir) {
		if err := p.mount(ctx, path, info, req, len(here) > 0); err != nil {
			return volume.MountResult{}, err
		}
	}
	shared, err := p.shared(req.Dir)
	return volume.MountResult{HostPath: req.Dir, SetOwner: !shared && !req.ReadOnly}, err
}

func (p *Local) mount(ctx context.Context, path string, info fs.FileInfo, req volume.MountRequest, mounted bool) error {
	if err := removeReady(req.MetaDir); err != nil {
		return err
	}
	if err := os.MkdirAll(req.Dir, parentMode); err != nil {
		return err
	}
	var err error
	switch {
	case mounted: // an interrupted call got that far
	case info.IsDir():
		err = bind(path, req.Dir)
	case isBlockDevice(info):
		err = p.mountDevice(ctx, path, req)
	default:
		err = errors.New("only directory and block device are supported")
	}
	if err != nil {
		return err
	}
	if options := mountOptions(req.Source, req.ReadOnly); len(options) > 0 {
		if err := p.mounts.Mount(ctx, "", req.Dir, "", append([]string{"bind", "remount"}, options...)); err != nil {
			return err
		}
	}
	return markReady(req.MetaDir)
}

func bind(path, target string) error {
	source, err := beneath.OpenDir(path)
	if err != nil {
		return err
	}
	defer source.Close()
	return volume.HostMounter{}.Bind(source, target)
}

// mountDevice mounts the file system of a device. One that is mounted already
// is neither checked nor mounted again: another pod writes to it.
func (p *Local) mountDevice(ctx context.Context, path string, req volume.MountRequest) error {
	release, err := p.take(ctx, path)
	if err != nil {
		return err
	}
	defer release()
	at, err := p.whereMounted(path)
	if err != nil {
		return err
	}
	if at != "" {
		return bind(at, req.Dir)
	}
	fsType := "ext4"
	if t := req.PersistentVolume.Spec.Local.FSType; t != nil && *t != "" {
		fsType = *t
	}
	return p.mounts.FormatAndMount(path, req.Dir, fsType, mountOptions(req.Source, req.ReadOnly))
}

// whereMounted is a place where the whole file system of a device is mounted.
func (p *Local) whereMounted(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	var st unix.Stat_t
	if err := unix.Stat(real, &st); err != nil {
		return "", &fs.PathError{Op: "stat", Path: real, Err: err}
	}
	all, err := p.mounts.List()
	for _, m := range all {
		if m.Root == "/" && (m.Device == st.Rdev || m.Source == path || m.Source == real) {
			return m.Target, err
		}
	}
	return "", err
}

// shared says whether another pod has the same mounted.
func (p *Local) shared(dir string) (bool, error) {
	here, all, err := mountsOn(p.mounts, dir)
	if err != nil || len(here) == 0 {
		return false, err
	}
	mine := here[len(here)-1]
	place := "/volumes/" + strings.ReplaceAll(p.Name(), "/", "~") + "/"
	return slices.ContainsFunc(all, func(m Mounted) bool {
		return m.Target != mine.Target && m.Device == mine.Device && m.Root == mine.Root && strings.Contains(m.Target, place)
	}), nil
}

// take waits for the device.
func (p *Local) take(ctx context.Context, path string) (release func(), err error) {
	p.mu.Lock()
	token := p.devices[path]
	if token == nil {
		token = make(chan struct{}, 1)
		p.devices[path] = token
	}
	p.mu.Unlock()
	select {
	case token <- struct{}{}:
		return func() { <-token }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for device %s: %w", path, ctx.Err())
	}
}

// Mounted implements [volume.Plugin].
func (p *Local) Mounted(_ context.Context, req volume.MountedRequest) (volume.MountedResult, error) {
	result := volume.MountedResult{HostPath: req.Dir, ReadOnly: req.ReadOnly}
	if info, err := os.Lstat(req.Dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		result.Mounted = true // a device
		return result, nil
	}
	here, _, err := mountsOn(p.mounts, req.Dir)
	result.Mounted = len(here) > 0 && marked(req.MetaDir)
	return result, err
}

// Unmount implements [volume.Plugin].
func (p *Local) Unmount(ctx context.Context, req volume.UnmountRequest) error {
	return takeOff(ctx, p.mounts, req)
}

// linkDevice makes dir a link to the device.
func linkDevice(path string, info fs.FileInfo, dir string) error {
	if !isBlockDevice(info) {
		return fmt.Errorf("%s is not a block device", path)
	}
	if err := os.MkdirAll(filepath.Dir(dir), parentMode); err != nil {
		return err
	}
	if target, err := os.Readlink(dir); err == nil && target == path {
		return nil
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(path, dir)
}

func isBlockDevice(info fs.FileInfo) bool { return info.Mode().Type() == fs.ModeDevice }
