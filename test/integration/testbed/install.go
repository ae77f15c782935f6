package testbed

import (
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ContainerdVersion is the containerd 2 that Install builds.
const ContainerdVersion = "v2.4.2"

// busyboxPath also exists with the dynamic busybox package, which would not run
// in an image of its own.
const busyboxPath = "/bin/busybox"

// Package is a Debian package, and a file that tells that it is there.
type Package struct{ File, Name string }

// Busybox is the package of the one program in BusyboxImage.
func Busybox() Package { return Package{busyboxPath, "busybox-static"} }

func debianPackages() []Package {
	return []Package{
		{"/usr/bin/containerd", "containerd"},
		{"/usr/sbin/runc", "runc"},
		{"/usr/lib/cni/bridge", "containernetworking-plugins"},
		{"/usr/sbin/iptables", "iptables"},
		{"/bin/ip", "iproute2"},
		Busybox(),
	}
}

// Install brings what the beds need: Debian packages, and containerd 2 built
// from its module into CacheDir. What is there already is left alone, so a
// second call costs nothing. It needs root.
func Install(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("testbed: needs root to run containerd")
	}
	if err := InstallPackages(ctx, debianPackages()); err != nil {
		return err
	}
	return buildContainerd(ctx)
}

// InstallPackages installs those of the packages that are not there. It needs
// root where any is missing.
func InstallPackages(ctx context.Context, packages []Package) error {
	var missing []string
	for _, p := range packages {
		if !p.isThere() {
			missing = append(missing, p.Name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if _, err := aptGet(ctx, "update", "-qq"); err != nil {
		return err
	}
	_, err := aptGet(ctx, append([]string{"install", "-y", "-qq", "--no-install-recommends"}, missing...)...)
	return err
}

func (p Package) isThere() bool {
	if p == Busybox() {
		return isStatic(p.File)
	}
	_, err := os.Stat(p.File)
	return err == nil
}

// isStatic says that a program needs no dynamic loader.
func isStatic(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return false
		}
	}
	return true
}

func aptGet(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	return run(cmd)
}

// CacheDir holds what takes long to build: $XDG_CACHE_HOME/nodekit/bin, or
// ~/.cache/nodekit/bin. NODEKIT_CACHE_DIR overrides it.
func CacheDir() (string, error) {
	if dir := os.Getenv("NODEKIT_CACHE_DIR"); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("testbed: no cache folder (set NODEKIT_CACHE_DIR): %w", err)
	}
	return filepath.Join(dir, "nodekit", "bin"), nil
}

// containerdDir holds containerd 2, its shim and ctr. The version is in the
// name, so that a new version is never mistaken for an old one.
func containerdDir() (string, error) {
	cache, err := CacheDir()
	return filepath.Join(cache, "containerd-"+ContainerdVersion), err
}

func buildContainerd(ctx context.Context) error {
	dir, err := containerdDir()
	if err != nil {
		return err
	}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			continue
		}
		pkg := "github.com/containerd/containerd/v2/cmd/" + name + "@" + ContainerdVersion
		if err := goInstall(ctx, dir, pkg); err != nil {
			return err
		}
	}
	return nil
}

// goInstall builds a static program of a module at a version. The go command
// renames the finished binary into place, so an interrupted build leaves none.
func goInstall(ctx context.Context, bin, pkgAtVersion string) error {
	cmd := exec.CommandContext(ctx, "go", "install", "-trimpath", "-ldflags=-s -w", pkgAtVersion)
	cmd.Env = append(withoutGoFlags(os.Environ()), "CGO_ENABLED=0", "GOBIN="+bin)
	_, err := run(cmd)
	return err
}

// withoutGoFlags drops GOFLAGS, which may carry -mod or -race of the caller.
func withoutGoFlags(env []string) []string {
	var kept []string
	for _, kv := range env {
		if !strings.HasPrefix(kv, "GOFLAGS=") {
			kept = append(kept, kv)
		}
	}
	return append(kept, "GOFLAGS=-buildvcs=false")
}
