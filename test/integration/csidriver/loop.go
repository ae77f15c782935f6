package csidriver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"nodekit.dev/test/integration/testbed"
)

// Packages are the Debian packages with the programs that the driver calls.
func Packages() []testbed.Package {
	return []testbed.Package{
		{File: "/sbin/losetup", Name: "mount"},
		{File: "/sbin/mkfs.xfs", Name: "xfsprogs"},
		{File: "/sbin/mkfs.ext4", Name: "e2fsprogs"},
	}
}

// Require installs what the driver calls, and skips the test, saying why, where
// no driver can run; with testbed.RequireAllEnv set it fails it instead.
func Require(t testing.TB) {
	t.Helper()
	err := usable(t.Context())
	switch {
	case err == nil:
	case os.Getenv(testbed.RequireAllEnv) != "":
		t.Fatalf("%s is set, and this test can not run: %v", testbed.RequireAllEnv, err)
	default:
		t.Skipf("needs loop devices and file systems: %v", err)
	}
}

func usable(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("only root may attach loop devices")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		return err
	}
	return testbed.InstallPackages(ctx, Packages())
}

func run(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// resize makes a sparse file that big; never smaller.
func resize(path string, size int64) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Size() >= size {
		return err
	}
	return file.Truncate(size)
}

// loop is a loop device and the file behind it.
type loop struct{ name, file string }

// attachedBelow lists the loop devices of files in a folder.
func attachedBelow(dir string) (found []loop, err error) {
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	backings, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, err
	}
	for _, backing := range backings {
		text, err := os.ReadFile(backing)
		if err != nil {
			continue // it was detached just now
		}
		file := strings.TrimSpace(string(text))
		if strings.HasPrefix(file, dir+"/") {
			found = append(found, loop{"/dev/" + filepath.Base(filepath.Dir(filepath.Dir(backing))), file})
		}
	}
	return found, nil
}

// attachedTo is the loop device of a file; empty: it has none.
func attachedTo(image string) (string, error) {
	all, err := attachedBelow(filepath.Dir(image))
	for _, device := range all {
		if filepath.Base(device.file) == filepath.Base(image) {
			return device.name, nil
		}
	}
	return "", err
}

// attach gives a file a loop device, unless it has one.
func attach(ctx context.Context, image string) (string, error) {
	device, err := attachedTo(image)
	if err == nil && device != "" && leaving(device) {
		err = gone(ctx, image)
		device = ""
	}
	if err != nil || device != "" {
		return device, err
	}
	return run(ctx, "losetup", "--find", "--show", image)
}

// leaving says that a device was detached while somebody still had it open.
func leaving(device string) bool {
	text, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(device), "loop/autoclear"))
	return err == nil && strings.TrimSpace(string(text)) == "1"
}

// detach takes the loop device of a file away, and waits until it is gone: a
// process that just got a mount namespace has a copy of each mount for a moment.
func detach(ctx context.Context, image string) error {
	device, err := attachedTo(image)
	if err != nil || device == "" {
		return err
	}
	if !leaving(device) {
		if _, err := run(ctx, "losetup", "--detach", device); err != nil && !strings.Contains(err.Error(), "No such device") {
			return err
		}
	}
	return gone(ctx, image)
}

func gone(ctx context.Context, image string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return testbed.Eventually(ctx, 5*time.Millisecond, func(context.Context) error {
		device, err := attachedTo(image)
		if err == nil && device != "" {
			err = fmt.Errorf("%s is still attached to %s", device, image)
		}
		return err
	})
}

// fsTypeOf is what is on a device; empty: nothing.
func fsTypeOf(ctx context.Context, device string) (string, error) {
	out, err := run(ctx, "blkid", "--probe", "--match-tag", "TYPE", "--output", "value", device)
	const nothing = 2
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == nothing {
		return "", nil
	}
	return out, err
}

// format makes a file system on a device that is blank.
func format(ctx context.Context, device, fsType string) error {
	switch found, err := fsTypeOf(ctx, device); {
	case err != nil || found == fsType:
		return err
	case found != "":
		return fmt.Errorf("%s has %s, not %s", device, found, fsType)
	}
	switch fsType {
	case "xfs":
		_, err := run(ctx, "mkfs.xfs", "-q", "-K", device)
		return err
	case "ext4":
		_, err := run(ctx, "mkfs.ext4", "-q", "-E", "nodiscard", device)
		return err
	}
	return fmt.Errorf("fsType %q is neither xfs nor ext4", fsType)
}

// CanGrow says whether file systems of that type can be grown here while they
// are mounted: the kernel wants CAP_SYS_RESOURCE for ext4, and not for xfs.
func CanGrow(fsType string) bool {
	const sysResource = 24
	text, err := os.ReadFile("/proc/self/status")
	if err != nil || fsType != "ext4" {
		return err == nil
	}
	_, rest, _ := strings.Cut(string(text), "CapEff:")
	line, _, _ := strings.Cut(rest, "\n")
	set, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	return err == nil && set&(1<<sysResource) != 0
}
