package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"nodekit.dev/test/integration/daemon"
)

const (
	suite  = "bookworm"
	kernel = "linux-image-cloud-amd64"
	// inside is what the guest has beside Debian's required packages.
	inside = "systemd-sysv,dbus,udev,kmod,iproute2,containerd,runc,containernetworking-plugins,busybox-static,procps,iptables"
	// rootSize is that of the file system, most of it holes in the file.
	rootSize = "4G"
)

// masked are units that would only cost time in a machine that lives a minute.
const masked = "getty@tty1.service serial-getty@ttyS0.service apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer " +
	"e2scrub_all.timer e2scrub_reap.service fstrim.timer systemd-update-utmp.service systemd-random-seed.service"

// machineID is fixed: systemd would otherwise take each boot for the first one,
// and enable and generate what nobody needs.
const machineID = "6e6f64656b69742d746573742d766d31"

// loaded are the modules that the initramfs loads to find the root; ext4 is built
// in.
const loaded = "virtio_pci virtio_blk"

// recipe is all that an image is made from; Debian's updates alone make no new
// one. Change revision when build changes.
func recipe() string {
	const revision = "1"
	return strings.Join([]string{revision, suite, kernel, inside, rootSize, masked, machineID, loaded, initScript}, "\n")
}

// build makes an image in dir.
func build(ctx context.Context, dir string) error {
	root, unpacked := filepath.Join(dir, "root"), filepath.Join(dir, "kernel")
	// In a mount namespace of its own, an interrupted one leaves no mounts.
	if err := run(ctx, dir, "unshare", "--mount", "debootstrap", "--variant=minbase", "--include="+inside, suite, root); err != nil {
		return fmt.Errorf("%w\n%s", err, daemon.Tail(filepath.Join(root, "debootstrap", "debootstrap.log"), 20))
	}
	version, err := unpackKernel(ctx, dir, unpacked)
	if err != nil {
		return err
	}
	modules := filepath.Join("lib", "modules", version)
	steps := []func() error{
		func() error { return os.MkdirAll(filepath.Join(root, "lib", "modules"), 0o755) },
		func() error { return os.Rename(filepath.Join(unpacked, modules), filepath.Join(root, modules)) },
		func() error { return run(ctx, dir, "chroot", root, "depmod", version) },
		func() error { return settle(root) },
		func() error { return makeInitramfs(ctx, filepath.Join(dir, initrdFile), root, version) },
		func() error {
			return os.Rename(filepath.Join(unpacked, "boot", "vmlinuz-"+version), filepath.Join(dir, kernelFile))
		},
		// Without a journal: nobody mounts it twice.
		func() error {
			return run(ctx, dir, "mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", root, filepath.Join(dir, rootFile), rootSize)
		},
		func() error { return os.RemoveAll(root) },
		func() error { return os.RemoveAll(unpacked) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// unpackKernel downloads the kernel that the meta package asks for and unpacks
// it, without the scripts that want a boot loader.
func unpackKernel(ctx context.Context, dir, into string) (version string, err error) {
	if err := run(ctx, dir, "apt-get", "update", "-qq"); err != nil {
		return "", err
	}
	depends, err := output(ctx, dir, "apt-cache", "depends", "--important", kernel)
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`Depends: linux-image-(\d\S+)`).FindStringSubmatch(depends)
	if found == nil {
		return "", fmt.Errorf("the package %s names no kernel:\n%s", kernel, depends)
	}
	version = found[1]
	if err := run(ctx, dir, "apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", "linux-image-"+version); err != nil {
		return "", err
	}
	debs, err := filepath.Glob(filepath.Join(dir, "linux-image-*.deb"))
	if err != nil || len(debs) != 1 {
		return "", fmt.Errorf("apt-get download left %v (%w)", debs, err)
	}
	if err := run(ctx, dir, "dpkg", "-x", debs[0], into); err != nil {
		return "", err
	}
	return version, os.Remove(debs[0])
}

// settle writes what makes the boot short, and drops what is only weight.
func settle(root string) error {
	files := map[string]string{
		"etc/machine-id": machineID + "\n",
		"etc/hostname":   "vm\n",
		"etc/hosts":      "127.0.0.1 localhost\n127.0.1.1 vm\n",
		"etc/systemd/journald.conf.d/memory.conf": "[Journal]\nStorage=volatile\nRateLimitBurst=0\n",
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			return err
		}
	}
	for unit := range strings.FieldsSeq(masked) {
		if err := os.Symlink("/dev/null", filepath.Join(root, "etc/systemd/system", unit)); err != nil {
			return err
		}
	}
	for _, weight := range []string{"var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale"} {
		if err := os.RemoveAll(filepath.Join(root, weight)); err != nil {
			return err
		}
	}
	return nil
}

func run(ctx context.Context, dir, name string, args ...string) error {
	_, err := output(ctx, dir, name, args...)
	return err
}

// output is what a command prints; what it complains of is part of the error.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr strings.Builder
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}
