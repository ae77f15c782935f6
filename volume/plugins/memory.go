package plugins

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"nodekit.dev/internal/beneath"
	"nodekit.dev/volume"
)

// Memory mounts file systems in memory, for content that must not reach a
// disk. Safe for concurrent use.
type Memory interface {
	// MountTmpfs mounts an empty tmpfs on the open directory, for at most that
	// many bytes; 0 leaves the limit to the kernel. It is kept out of swap
	// where the kernel can.
	MountTmpfs(dir *os.File, size int64) error
	// MountHugetlbfs mounts an empty file system of huge pages of that size, in
	// bytes, on the open directory, for at most limit bytes; 0: no limit.
	MountHugetlbfs(dir *os.File, pageSize, limit int64) error
	// Unmount takes the topmost mount off target, following no symlink.
	// ErrNotExist or EINVAL mean that nothing is mounted there.
	Unmount(target string) error
}

// HostMemory is the [Memory] of the mount namespace that the process is in.
type HostMemory struct{ volume.HostMounter }

// MountTmpfs implements [Memory].
func (HostMemory) MountTmpfs(dir *os.File, size int64) error {
	limit := ""
	if size > 0 {
		limit = fmt.Sprintf("size=%d", size)
	}
	target := beneath.ProcPath(dir)
	err := unix.Mount("tmpfs", target, "tmpfs", 0, comma(limit, "noswap"))
	if errors.Is(err, unix.EINVAL) { // older than Linux 6.4, or in a user namespace
		err = unix.Mount("tmpfs", target, "tmpfs", 0, limit)
	}
	if err != nil {
		return fmt.Errorf("mount a tmpfs on %s: %w", dir.Name(), err)
	}
	return nil
}

// MountHugetlbfs implements [Memory].
func (HostMemory) MountHugetlbfs(dir *os.File, pageSize, limit int64) error {
	options := fmt.Sprintf("pagesize=%d", pageSize)
	if limit > 0 {
		options += fmt.Sprintf(",size=%d", limit)
	}
	err := unix.Mount("nodev", beneath.ProcPath(dir), "hugetlbfs", 0, options)
	switch {
	case errors.Is(err, unix.ENODEV):
		return fmt.Errorf("mount huge pages on %s: the kernel has no huge pages: %w", dir.Name(), err)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("mount huge pages on %s: the machine has no huge pages of %d bytes: %w", dir.Name(), pageSize, err)
	case err != nil:
		return fmt.Errorf("mount huge pages on %s: %w", dir.Name(), err)
	}
	return nil
}

func comma(a, b string) string {
	if a == "" {
		return b
	}
	return a + "," + b
}

// ensureTmpfs mounts a tmpfs on the directory unless one is there.
func ensureTmpfs(memory Memory, dir string, size int64) error {
	return ensureMounted(dir, "tmpfs", unix.TMPFS_MAGIC, func(open *os.File) error { return memory.MountTmpfs(open, size) })
}

// ensureHugetlbfs does so with huge pages.
func ensureHugetlbfs(memory Memory, dir string, pageSize, limit int64) error {
	return ensureMounted(dir, "hugetlbfs", unix.HUGETLBFS_MAGIC, func(open *os.File) error {
		return memory.MountHugetlbfs(open, pageSize, limit)
	})
}

func ensureMounted(dir, kind string, magic int64, mount func(*os.File) error) error {
	mounted, err := isMountPoint(dir)
	if err != nil {
		return err
	}
	if !mounted {
		open, err := openDir(dir)
		if err != nil {
			return err
		}
		defer open.Close()
		return mount(open)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if magicOf(&st) != magic {
		return fmt.Errorf("something else than a %s is mounted on %s: unmount it", kind, dir)
	}
	return nil
}

// inMemory says whether a directory is in memory, or of huge pages.
func inMemory(dir string) bool {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	return err == nil && (magicOf(&st) == unix.TMPFS_MAGIC || magicOf(&st) == unix.HUGETLBFS_MAGIC)
}

// magicOf is the kind of a file system. Where the field has 32 bits, its sign is
// none.
func magicOf(st *unix.Statfs_t) int64 { return int64(uint32(st.Type)) } //nolint:gosec // the kernel's are of 32 bits

// isMountPoint says whether a file system begins at the directory.
func isMountPoint(dir string) (bool, error) {
	var at, above unix.Stat_t
	if err := unix.Lstat(dir, &at); err != nil {
		return false, &fs.PathError{Op: "lstat", Path: dir, Err: err}
	}
	if err := unix.Lstat(filepath.Dir(dir), &above); err != nil {
		return false, &fs.PathError{Op: "lstat", Path: filepath.Dir(dir), Err: err}
	}
	return at.Dev != above.Dev, nil
}

// unmountTmpfs takes all mounts off dir. One below it is not ours.
func unmountTmpfs(memory Memory, dir string, mounts []string) error {
	for _, point := range mounts {
		if point != dir {
			return &beneath.MountError{Path: point}
		}
	}
	for range mounts {
		err := memory.Unmount(dir)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
