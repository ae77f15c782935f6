package volumetest

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
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/internal/beneath/beneathtest"
	"nodekit.dev/volume"
)

// Subject is a plugin to hold against the contract. Plugin and Source are
// required.
type Subject struct {
	Plugin volume.Plugin
	// Source is where volume n comes from; 0 to 7 are asked for, and must not
	// stand in each other's way.
	Source func(n int) volume.Source
	// Pod is whose the volumes are; nil: one without containers. Its UID is not
	// used.
	Pod *corev1.Pod
	// Restart makes the plugin of an agent that starts anew, which remembers
	// nothing; nil: Plugin keeps nothing in memory.
	Restart func() volume.Plugin
}

// Main runs the tests of a package in a private mount namespace, as root. Use it
// in TestMain; it returns the exit code.
func Main(m *testing.M) int { return beneathtest.Main(m) }

// Suite runs the contract. Each case is a subtest.
func Suite(t *testing.T, subject func(t *testing.T) Subject) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*bed)
	}{
		{"Names", (*bed).names},
		{"MountAgain", (*bed).mountAgain},
		{"Restart", (*bed).restart},
		{"HalfMounted", (*bed).halfMounted},
		{"UnmountAgain", (*bed).unmountAgain},
		{"UnmountHalfDone", (*bed).unmountHalfDone},
		{"NothingIsRemovedThroughAMount", (*bed).throughAMount},
		{"SideBySide", (*bed).sideBySide},
		{"Cancelled", (*bed).cancelled},
		{"LongNames", (*bed).longNames},
	} {
		t.Run(c.name, func(t *testing.T) {
			beneathtest.NeedMounts(t)
			c.run(newBed(t, subject(t)))
		})
	}
}

// patience is how long a call may take that has nothing to wait for.
const patience = 30 * time.Second

// bed is one case: a root directory, and the subject that works in it.
type bed struct {
	*testing.T
	Subject
	root string
}

func newBed(t *testing.T, s Subject) *bed {
	t.Helper()
	if s.Plugin == nil || s.Source == nil {
		t.Fatal("volumetest: a Subject needs Plugin and Source")
	}
	if s.Pod == nil {
		s.Pod = &corev1.Pod{}
		s.Pod.Namespace, s.Pod.Name = "default", "pod"
	}
	if s.Restart == nil {
		s.Restart = func() volume.Plugin { return s.Plugin }
	}
	b := &bed{t, s, t.TempDir()}
	t.Cleanup(b.leaveNothingMounted)
	return b
}

// leaveNothingMounted lets the test's directory be removed, also after a failure.
func (b *bed) leaveNothingMounted() {
	points, err := volume.HostMounter{}.MountPoints(b.root)
	if err != nil {
		b.Error(err)
	}
	for _, point := range points {
		b.Errorf("%s is still mounted after the case", point)
		_ = unix.Unmount(point, unix.MNT_DETACH)
	}
}

// one is one volume of one pod.
type one struct {
	*bed
	volume.Source
	uid       string
	dir, meta string
}

// volume is volume n, under a name.
func (b *bed) volume(n int, name string) one {
	s := b.Source(n)
	uid := fmt.Sprintf("0a1b2c3d-0000-4000-8000-%012d", n)
	kind := "volumes"
	if s.Block() {
		kind = "volumeDevices"
	}
	plugin := strings.ReplaceAll(b.Plugin.Name(), "/", "~")
	pod := filepath.Join(b.root, "pods", uid)
	return one{b, s, uid, filepath.Join(pod, kind, plugin, name), filepath.Join(pod, "plugins", plugin, name)}
}

func (b *bed) first() one { return b.volume(0, "data") }

func (o one) mount(ctx context.Context) (volume.MountResult, error) {
	pod := o.Pod.DeepCopy()
	pod.UID = types.UID(o.uid)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return o.Plugin.Mount(ctx, volume.MountRequest{Pod: pod, Source: o.Source, Dir: o.dir, MetaDir: o.meta})
}

func (o one) mustMount() string {
	o.Helper()
	result, err := o.mount(o.Context())
	if err != nil {
		o.Fatalf("Mount: %v", err)
	}
	if !filepath.IsAbs(result.HostPath) {
		o.Fatalf("Mount says that the volume is at %q", result.HostPath)
	}
	if _, err := os.Stat(result.HostPath); err != nil {
		o.Fatalf("Mount says where the volume is, and there is nothing: %v", err)
	}
	return result.HostPath
}

func (o one) mounted() volume.MountedResult {
	o.Helper()
	ctx, cancel := context.WithTimeout(o.Context(), patience)
	defer cancel()
	result, err := o.Plugin.Mounted(ctx, volume.MountedRequest{UID: o.uid, Dir: o.dir, MetaDir: o.meta, Source: o.Source})
	if err != nil {
		o.Fatalf("Mounted: %v", err)
	}
	return result
}

func (o one) mustBeMounted(at string) {
	o.Helper()
	if got := o.mounted(); !got.Mounted || got.HostPath != at {
		o.Fatalf("after Mount at %s Mounted says %+v", at, got)
	}
}

// unmount knows no more than the volume's name, as for a pod whose spec is gone.
// Then it takes the notes away, as the manager does.
func (o one) unmount() error {
	o.Helper()
	ctx, cancel := context.WithTimeout(o.Context(), patience)
	defer cancel()
	err := o.Plugin.Unmount(ctx, volume.UnmountRequest{
		UID: o.uid, Volume: filepath.Base(o.dir), Dir: o.dir, MetaDir: o.meta, Mounts: o.mounts(),
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(o.meta)
}

func (o one) mustUnmount() {
	o.Helper()
	if err := o.unmount(); err != nil {
		o.Fatalf("Unmount: %v", err)
	}
	o.nothingLeft()
}

func (o one) mounts() []string {
	o.Helper()
	points, err := volume.HostMounter{}.MountPoints(o.dir)
	if err != nil {
		o.Error(err)
	}
	return points
}

func (o one) nothingLeft() {
	o.Helper()
	if points := o.mounts(); len(points) > 0 {
		o.Errorf("after Unmount %q are mounted", points)
	}
	list, err := os.ReadDir(filepath.Dir(o.dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		o.Fatal(err)
	}
	for _, entry := range list {
		if strings.HasPrefix(entry.Name(), filepath.Base(o.dir)) {
			o.Errorf("after Unmount %s is left", entry.Name())
		}
	}
}

func (b *bed) names() {
	name := b.Plugin.Name()
	if name == "" || name != b.Plugin.Name() || strings.ContainsAny(name, "~\x00") || len(name) > 255 {
		b.Errorf("Name %q: want the same short name each time, without ~", name)
	}
	if !b.Plugin.Supports(b.Source(0)) {
		b.Error("Supports does not know the plugin's own source")
	}
	if b.Plugin.Supports(volume.Source{Volume: corev1.Volume{Name: "data"}}) {
		b.Error("Supports takes a volume that comes from nowhere")
	}
}

func (b *bed) mountAgain() {
	o := b.first()
	path := o.mustMount()
	o.mustBeMounted(path)
	before := o.mounts()
	for range 2 {
		if again := o.mustMount(); again != path {
			b.Errorf("the volume moved from %s to %s", path, again)
		}
	}
	if after := o.mounts(); !slices.Equal(before, after) {
		b.Errorf("a mount of what is mounted made %q of the mounts %q", after, before)
	}
	o.mustUnmount()
}

// restart: an agent that starts anew finds what is mounted, and undoes it.
func (b *bed) restart() {
	o := b.first()
	path := o.mustMount()
	b.Plugin = b.Restart()
	o.mustBeMounted(path)
	o.mustMount()
	b.Plugin = b.Restart()
	o.mustUnmount()
	b.Plugin = b.Restart()
	o.mustUnmount()
}

// leftovers are what an agent that was killed, or a machine that started anew,
// leaves of a volume that was mounted.
func (o one) leftovers() map[string]func() {
	return map[string]func(){
		"no notes":         func() { o.must(os.RemoveAll(o.meta)) },
		"no mounts":        o.reboot,
		"neither":          func() { o.reboot(); o.must(os.RemoveAll(o.meta)) },
		"the notes alone":  func() { o.reboot(); o.must(os.RemoveAll(o.dir)) },
		"an empty place":   func() { o.reboot(); o.must(os.RemoveAll(o.dir)); o.must(os.RemoveAll(o.meta)); o.emptyPlace() },
		"the parents only": func() { o.reboot(); o.must(os.RemoveAll(o.dir)); o.must(os.RemoveAll(o.meta)) },
	}
}

func (o one) must(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

// reboot takes all mounts off.
func (o one) reboot() {
	o.Helper()
	for _, point := range o.mounts() {
		o.must(unix.Unmount(point, unix.MNT_DETACH))
	}
}

// emptyPlace makes the directory of a volume that is none of a device.
func (o one) emptyPlace() {
	if !o.Block() {
		o.must(os.MkdirAll(o.dir, 0o750))
	}
}

// halfMounted: whatever is there, Mount finishes it.
func (b *bed) halfMounted() {
	n := 0
	for name := range b.first().leftovers() {
		o := b.volume(n%8, fmt.Sprint("half-", n))
		n++
		leave := o.leftovers()[name]
		o.mustMount()
		hadMounts := len(o.mounts()) > 0
		leave()
		b.Plugin = b.Restart()
		if hadMounts && len(o.mounts()) == 0 && o.mounted().Mounted {
			b.Errorf("left was %s: Mounted takes it for a whole mount", name)
		}
		path, err := o.mount(b.Context())
		if err != nil {
			b.Errorf("left was %s: Mount: %v", name, err)
		} else {
			o.mustBeMounted(path.HostPath)
		}
		o.mustUnmount()
	}
}

func (b *bed) unmountAgain() {
	o := b.first()
	o.mustUnmount() // what never was
	o.mustMount()
	for range 3 {
		o.mustUnmount()
	}
	o.mustMount() // and it can come back
	o.mustUnmount()
}

// unmountHalfDone: whatever is there, Unmount takes it away.
func (b *bed) unmountHalfDone() {
	n := 0
	for name := range b.first().leftovers() {
		o := b.volume(n%8, fmt.Sprint("half-", n))
		n++
		o.mustMount()
		o.leftovers()[name]()
		b.Plugin = b.Restart()
		if err := o.unmount(); err != nil {
			b.Errorf("left was %s: Unmount: %v", name, err)
		}
		o.nothingLeft()
	}
}

// throughAMount: what is mounted in the volume is not the pod's to remove.
func (b *bed) throughAMount() {
	o := b.first()
	path := o.mustMount()
	below := filepath.Join(path, "below")
	if path != o.dir || o.Block() || os.Mkdir(below, 0o755) != nil {
		o.mustUnmount()
		b.Skip("nothing can be mounted in the volume's own directory")
	}
	o.must(unix.Mount("tmpfs", below, "tmpfs", 0, ""))
	o.must(os.WriteFile(filepath.Join(below, "file"), []byte("kept"), 0o600))
	if err := o.unmount(); err == nil {
		b.Error("Unmount of a volume with a foreign mount in it says that all is well")
	}
	if text, err := os.ReadFile(filepath.Join(below, "file")); string(text) != "kept" {
		b.Fatalf("Unmount reached through a mount: %q, %v", text, err)
	}
	o.must(unix.Unmount(below, unix.MNT_DETACH))
	if err := os.Remove(below); err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.Error(err)
	}
	o.mustUnmount()
}

// sideBySide: different volumes do not wait for each other for ever, nor mix.
func (b *bed) sideBySide() {
	var wait sync.WaitGroup
	for n := range 8 {
		wait.Go(func() {
			o := b.volume(n, fmt.Sprint("data-", n))
			result, err := o.mount(b.Context())
			if err != nil {
				b.Errorf("volume %d: Mount: %v", n, err)
				return
			}
			if got, err := o.Plugin.Mounted(b.Context(), volume.MountedRequest{UID: o.uid, Dir: o.dir, MetaDir: o.meta, Source: o.Source}); err != nil || !got.Mounted || got.HostPath != result.HostPath {
				b.Errorf("volume %d: Mounted says %+v, %v", n, got, err)
			}
		})
	}
	wait.Wait()
	for n := range 8 {
		wait.Go(func() {
			if err := b.volume(n, fmt.Sprint("data-", n)).unmount(); err != nil {
				b.Errorf("volume %d: Unmount: %v", n, err)
			}
		})
	}
	wait.Wait()
	for n := range 8 {
		b.volume(n, fmt.Sprint("data-", n)).nothingLeft()
	}
}

// cancelled: a call whose time is over ends, and the next one starts afresh.
func (b *bed) cancelled() {
	o := b.first()
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = o.mount(ctx) // it may as well succeed
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		b.Fatalf("Mount does not end with its context (%v)", patience)
	}
	o.mustBeMounted(o.mustMount())
	o.mustUnmount()
}

// longNames are those of volumes and of PersistentVolumes at their limits.
func (b *bed) longNames() {
	for n, length := range []int{63, 253} {
		o := b.volume(n, strings.Repeat("n", length))
		o.mustBeMounted(o.mustMount())
		o.mustUnmount()
	}
}
