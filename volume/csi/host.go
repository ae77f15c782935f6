package csi

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"nodekit.dev/internal/beneath"
)

// isMountPoint says whether something is mounted on the path. It does not wait
// for a server: what is asked is the kernel's own knowledge.
func isMountPoint(path string) (bool, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT|unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &st)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err == nil && st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0:
		return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
	}
	// An old kernel, or a mount whose server is gone.
	mounts, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(path))
	return len(mounts) > 0, err
}

// removeEmpty removes a file or an empty directory, if nothing is mounted there.
func removeEmpty(path string) error {
	mounted, err := isMountPoint(path)
	if err != nil {
		return err
	}
	if mounted {
		return &beneath.MountError{Path: path}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeParents removes empty directories upwards, up to and without top.
func removeParents(dir, top string) {
	for ; dir != top && len(dir) > len(top); dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil { // others are in there
			return
		}
	}
}

// link makes a symlink, in the place of another one.
func link(to, path string) error {
	if old, err := os.Readlink(path); err == nil && old == to {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("making a link to a device: %w", err)
	}
	return os.Symlink(to, path)
}
