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
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	mountutils "k8s.io/mount-utils"
	utilexec "k8s.io/utils/exec"

	"nodekit.dev/internal/beneath"
	"nodekit.dev/internal/command"
	"nodekit.dev/volume"
)

// Mounts is what the plugins for file systems with a life of their own ask of
// the host. Safe for concurrent use.
type Mounts interface {
	// Mount runs mount(8) with these arguments, of which source and fsType may
	// be empty. It blocks until the program ends; ctx kills it.
	Mount(ctx context.Context, source, target, fsType string, options []string) error
	// FormatAndMount makes a file system on the device, unless one is there,
	// checks it and mounts it. It blocks and is not cut off: half a file system
	// is worse than a late one.
	FormatAndMount(device, target, fsType string, options []string) error
	// Unmount takes the topmost mount off target, by force where it hangs; ctx
	// ends it. Nothing on the way to target is a symlink.
	Unmount(ctx context.Context, target string) error
	// List is what is mounted; it does not touch what is mounted.
	List() ([]Mounted, error)
}

// Mounted is one line of mountinfo.
type Mounted struct {
	Target string
	Source string // a device, or what the file system calls its origin
	Root   string // what of the file system is mounted
	Device uint64 // as in unix.Mkdev
}

// HostMounts is the [Mounts] of the mount namespace that the process is in,
// with mount(8), umount(8), mkfs and fsck of the host.
type HostMounts struct{}

// unmountTime is when an unmount counts as hung, as with the stock kubelet.
const unmountTime = time.Minute

// Mount implements [Mounts].
func (HostMounts) Mount(ctx context.Context, source, target, fsType string, options []string) error {
	args := mountutils.MakeMountArgs(source, target, fsType, options)
	exit, output, err := command.Runner{}.Run(ctx, "mount", args...)
	if err == nil && exit != 0 {
		err = fmt.Errorf("exit status %d", exit)
	}
	if err != nil {
		return fmt.Errorf("mount failed: %w\nMounting command: mount\nMounting arguments: %s\nOutput: %s", err, strings.Join(args, " "), output)
	}
	return nil
}

// FormatAndMount implements [Mounts].
func (HostMounts) FormatAndMount(device, target, fsType string, options []string) error {
	return mountutils.NewSafeFormatAndMount(mountutils.NewWithoutSystemd(""), utilexec.New()).FormatAndMount(device, target, fsType, options)
}

// Unmount implements [Mounts].
func (HostMounts) Unmount(ctx context.Context, target string) error {
	run := func(args ...string) error {
		limited, cancel := context.WithTimeout(ctx, unmountTime)
		defer cancel()
		exit, output, err := command.Runner{}.Run(limited, "umount", append(args, "-c", target)...)
		if err == nil && exit != 0 {
			err = fmt.Errorf("umount %s: %s", target, strings.TrimSpace(string(output)))
		}
		return err
	}
	err := run()
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return run("-f")
	}
	return err
}

// List implements [Mounts].
func (HostMounts) List() ([]Mounted, error) {
	infos, err := mountinfo.GetMounts(nil)
	if err != nil {
		return nil, fmt.Errorf("reading mountinfo: %w", err)
	}
	list := make([]Mounted, 0, len(infos))
	for _, m := range infos {
		list = append(list, Mounted{
			Target: m.Mountpoint, Source: m.Source, Root: m.Root, Device: unix.Mkdev(uint32(m.Major), uint32(m.Minor)), //nolint:gosec // never negative
		})
	}
	return list, nil
}

// mountsOn are the mounts right on dir. Only the directory above it is looked
// at on the way: what is mounted on dir itself may hang.
func mountsOn(mounts Mounts, dir string) ([]Mounted, []Mounted, error) {
	above, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	all, err := mounts.List()
	if err != nil {
		return nil, nil, err
	}
	real := filepath.Join(above, filepath.Base(dir))
	here := slices.DeleteFunc(slices.Clone(all), func(m Mounted) bool { return m.Target != real })
	return here, all, nil
}

// takeOff undoes the mounts right on dir, and removes the empty directory. One
// below it is not ours.
func takeOff(ctx context.Context, mounts Mounts, req volume.UnmountRequest) error {
	for _, point := range req.Mounts {
		if point != req.Dir {
			return &beneath.MountError{Path: point}
		}
	}
	for range req.Mounts {
		if err := mounts.Unmount(ctx, req.Dir); err != nil {
			return err
		}
	}
	if err := removeReady(req.MetaDir); err != nil {
		return err
	}
	if err := os.Remove(req.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // with something in it, it is no mount point that we made
	}
	return nil
}

// markReady notes that a volume is complete.
func markReady(metaDir string) error {
	if err := os.MkdirAll(metaDir, parentMode); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(metaDir, readyFile), nil, parentMode)
}

// marked says whether markReady was called for a volume.
func marked(metaDir string) bool {
	_, err := os.Lstat(filepath.Join(metaDir, readyFile))
	return err == nil
}

// mountOptions are those of a PersistentVolume, without what a bind mount is
// made with anyway.
func mountOptions(s volume.Source, readOnly bool) []string {
	var options []string
	if s.PersistentVolume != nil {
		options = slices.Clone(s.PersistentVolume.Spec.MountOptions)
	}
	if readOnly {
		options = append(options, "ro")
	}
	slices.Sort(options)
	return slices.DeleteFunc(slices.Compact(options), func(o string) bool { return o == "bind" || o == "" })
}
