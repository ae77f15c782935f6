package machine

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestLoadOrder(t *testing.T) {
	const dep = `kernel/drivers/virtio/virtio.ko:
kernel/drivers/virtio/virtio_ring.ko: kernel/drivers/virtio/virtio.ko
kernel/drivers/virtio/virtio-pci.ko: kernel/drivers/virtio/virtio_ring.ko kernel/drivers/virtio/virtio.ko
kernel/drivers/block/virtio_blk.ko: kernel/drivers/virtio/virtio_ring.ko kernel/drivers/virtio/virtio.ko
`
	order, err := loadOrder(dep, []string{"virtio_pci", "virtio_blk"})
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range order {
		order[i] = filepath.Base(file)
	}
	if want := []string{"virtio.ko", "virtio_ring.ko", "virtio-pci.ko", "virtio_blk.ko"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	if _, err := loadOrder(dep, []string{"ext4"}); err == nil || !strings.Contains(err.Error(), "no module ext4") {
		t.Errorf("a module that is not there: %v", err)
	}
}

// What an image is made with is in its name.
func TestImageDirFollowsTheRecipe(t *testing.T) {
	for _, part := range []string{inside, masked, initScript, loaded, suite} {
		if !strings.Contains(recipe(), part) {
			t.Errorf("the recipe leaves out %q", part)
		}
	}
}

// An image that failed or was interrupted halfway is not taken for one, and of
// many that ask at once, one makes it.
func TestEnsure(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "vm")
	var builds atomic.Int32
	half := func(_ context.Context, dir string) error {
		builds.Add(1)
		return errors.Join(os.WriteFile(filepath.Join(dir, rootFile), nil, 0o600), errors.New("no space"))
	}
	whole := func(_ context.Context, dir string) error {
		builds.Add(1)
		return os.WriteFile(filepath.Join(dir, kernelFile), nil, 0o600)
	}
	if err := ensure(t.Context(), dir, half, io.Discard); err == nil || isImage(dir) {
		t.Fatalf("a half image is there (%v)", err)
	}
	// As a killed process leaves it.
	if err := errors.Join(os.Mkdir(dir+".tmp", 0o700), os.WriteFile(filepath.Join(dir+".tmp", initrdFile), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := ensure(t.Context(), dir, whole, io.Discard); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := builds.Load(); n != 2 {
		t.Errorf("built %d times, want one that failed and one", n)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 || entries[0].Name() != kernelFile {
		t.Errorf("the image has %v", entries)
	}
}

// A machine that can not boot says why, and ends.
func TestFailedBootIsTold(t *testing.T) {
	Require(t, os.Stderr)
	dir := t.TempDir()
	c := Config{Files: filepath.Join(dir, "files.tar"), Unit: "none.service", Console: filepath.Join(dir, "console.log")}
	if err := os.WriteFile(c.Files, []byte(strings.Repeat("no tar", 512)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	m, err := Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := io.ReadAll(m.Output); err != nil || len(out) > 0 {
		t.Errorf("it wrote %q (%v)", out, err)
	}
	if err := m.Wait(); err != nil {
		t.Error(err)
	}
	if console := m.ConsoleTail(20); !strings.Contains(console, "initramfs: can not unpack the files of this run") {
		t.Errorf("the console does not tell why:\n%s", console)
	}
}
