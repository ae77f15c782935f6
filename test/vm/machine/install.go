package machine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"nodekit.dev/test/integration/testbed"
)

// packages are what an image is made with, and run by.
func packages() []testbed.Package {
	return []testbed.Package{
		{File: "/usr/sbin/debootstrap", Name: "debootstrap"},
		{File: "/usr/bin/qemu-system-x86_64", Name: "qemu-system-x86"},
		{File: "/usr/bin/cpio", Name: "cpio"},
		{File: "/usr/sbin/mke2fs", Name: "e2fsprogs"},
		testbed.Busybox(),
	}
}

// Require skips the test, saying why, when this machine can not make or run
// another, and fails it instead when testbed.RequireAllEnv is set.
func Require(t testing.TB, progress io.Writer) {
	t.Helper()
	err := Install(t.Context(), progress)
	switch {
	case err == nil:
	case os.Getenv(testbed.RequireAllEnv) != "":
		t.Fatalf("%s is set, and this test can not run: %v", testbed.RequireAllEnv, err)
	default:
		t.Skipf("needs a virtual machine: %v", err)
	}
}

// Install installs what is missing and makes the image, if it is not there; the
// first time takes minutes. It tells progress what it does. Several processes
// may call it at once: one works, the others wait.
func Install(ctx context.Context, progress io.Writer) error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf("machine: made for linux on amd64, not for %s on %s", runtime.GOOS, runtime.GOARCH)
	}
	if os.Geteuid() != 0 {
		return errors.New("machine: needs root to make a root file system")
	}
	if err := testbed.InstallPackages(ctx, packages()); err != nil {
		return fmt.Errorf("machine: %w", err)
	}
	dir, err := imageDir()
	if err != nil {
		return err
	}
	return ensure(ctx, dir, build, progress)
}

// image are the files of an image, below imageDir.
const (
	rootFile   = "root.ext4"
	kernelFile = "vmlinuz"
	initrdFile = "initrd"
)

// imageDir is the image's folder in the cache.
func imageDir() (string, error) {
	cache, err := testbed.CacheDir()
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256([]byte(recipe()))
	return filepath.Join(cache, "vm-"+hex.EncodeToString(hash[:6])), nil
}

// ensure builds beside dir and moves the whole in, so that an interrupted build
// leaves nothing that could be taken for an image.
func ensure(ctx context.Context, dir string, build func(ctx context.Context, dir string) error, progress io.Writer) error {
	if isImage(dir) {
		return nil
	}
	unlock, err := testbed.Lock(dir+".lock", progress)
	if err != nil {
		return err
	}
	defer unlock()
	if isImage(dir) { // another process built it while we waited
		return nil
	}
	began := time.Now()
	fmt.Fprintf(progress, "making a virtual machine in %s; the first time takes minutes ...\n", dir)
	tmp := dir + ".tmp"
	if err := errors.Join(os.RemoveAll(tmp), os.MkdirAll(tmp, 0o755)); err != nil {
		return fmt.Errorf("machine: %w", err)
	}
	defer os.RemoveAll(tmp)
	if err := build(ctx, tmp); err != nil {
		return fmt.Errorf("machine: make the image: %w", err)
	}
	if err := os.Rename(tmp, dir); err != nil {
		return fmt.Errorf("machine: %w", err)
	}
	fmt.Fprintf(progress, "made it in %s\n", time.Since(began).Round(time.Second))
	return nil
}

// isImage says that an image is there: it only ever appears whole.
func isImage(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}
