package volume_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/internal/beneath/beneathtest"
	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
)

// conf is a ConfigMap that every pod refers to.
type conf struct {
	mu   sync.Mutex
	data map[string]string
	err  error
}

func (c *conf) ConfigMap(context.Context, types.UID, string, string) (*corev1.ConfigMap, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &corev1.ConfigMap{Data: c.data}, c.err
}

func (c *conf) set(value string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.data, c.err = map[string]string{"key": value}, err
}

// confManager makes a manager, as a new agent does, whose volumes the ConfigMap fills.
func confManager(t testing.TB, root string, c *conf, change ...func(*volume.Config)) *volume.Manager {
	t.Helper()
	cfg := volume.Config{RootDir: root}
	for _, fn := range change {
		fn(&cfg)
	}
	all := append(plugins.Default(), plugins.FromObjects(plugins.Sources{ConfigMaps: c})...)
	m, err := volume.New(cfg, all, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func confPod(uid string, mounts ...corev1.VolumeMount) *corev1.Pod {
	pod := newPod(uid, "", mounts...)
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "conf", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "conf"}},
	}})
	return pod
}

func confKey(root, uid string) string {
	return filepath.Join(root, "pods", uid, "volumes/kubernetes.io~configmap/conf/key")
}

func wantFile(t testing.TB, path, want string) {
	t.Helper()
	if data, err := os.ReadFile(path); err != nil || string(data) != want {
		t.Errorf("%s: %q, %v; want %q", path, data, err, want)
	}
}

func TestRefresh(t *testing.T) {
	c, root := &conf{}, t.TempDir()
	c.set("1", nil)
	m := confManager(t, root, c)
	pod := confPod("u")
	if result, err := m.Refresh(t.Context(), pod); err != nil || result.Followed != 0 {
		t.Errorf("nothing is mounted: %+v, %v", result, err)
	}
	wantGone(t, filepath.Dir(confKey(root, "u")))
	mustMount(t, m, pod, "data")
	mustMount(t, m, pod, "conf")
	c.set("2", nil)
	wantFile(t, confKey(root, "u"), "1")
	if result, err := m.Refresh(t.Context(), pod); err != nil || result.Followed != 1 || !result.Next.IsZero() {
		t.Errorf("%+v, %v", result, err)
	}
	wantFile(t, confKey(root, "u"), "2")
	c.set("3", errors.New("away"))
	_, err := m.Refresh(t.Context(), pod)
	if err == nil || err.Error() != `MountVolume.SetUp failed for volume "conf" : away` || reasoned.Reason(err, "") != "FailedMount" {
		t.Errorf("%v", err)
	}
	wantFile(t, confKey(root, "u"), "2")
	if err := m.Unmount(t.Context(), "u", "conf"); err != nil {
		t.Fatal(err)
	}
	c.set("4", nil)
	if result, err := m.Refresh(t.Context(), pod); err != nil || result.Followed != 0 {
		t.Errorf("after the unmount: %+v, %v", result, err)
	}
	wantGone(t, filepath.Dir(confKey(root, "u")))
}

// A refresh and an unmount at the same time leave nothing behind.
func TestRefreshBesideUnmount(t *testing.T) {
	c, root := &conf{}, t.TempDir()
	m := confManager(t, root, c)
	pod := confPod("u")
	for i := range 50 {
		c.set(strings.Repeat("x", i), nil)
		mustMount(t, m, pod, "conf")
		c.set("new", nil)
		var both sync.WaitGroup
		both.Go(func() { _, _ = m.Refresh(t.Context(), pod) })
		both.Go(func() {
			if err := m.Unmount(t.Context(), "u", "conf"); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		wantGone(t, filepath.Dir(confKey(root, "u")))
	}
}

// What an earlier agent mounted is brought up to date before a container
// starts with it, and where that can not be, the container starts all the same.
func TestContainerStartsWithFreshContent(t *testing.T) {
	c, root := &conf{}, t.TempDir()
	pod := confPod("u", corev1.VolumeMount{Name: "conf", MountPath: "/c"})
	request := volume.ContainerMountsRequest{Pod: pod, Container: "app"}
	c.set("1", nil)
	mustMount(t, confManager(t, root, c), pod, "conf")

	c.set("2", nil)
	m := confManager(t, root, c)
	mounts, err := m.ContainerMounts(t.Context(), request)
	if err != nil || !mounts[0].ReadOnly {
		t.Fatalf("%v, %v", mounts, err)
	}
	wantFile(t, confKey(root, "u"), "2")
	c.set("3", nil)
	if _, err := m.ContainerMounts(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	wantFile(t, confKey(root, "u"), "2") // once is enough: changes are told

	c.set("4", errors.New("away"))
	if _, err := confManager(t, root, c).ContainerMounts(t.Context(), request); err != nil {
		t.Errorf("a container can not start while the objects can not be read: %v", err)
	}
	wantFile(t, confKey(root, "u"), "2")
}

func TestSubPathKeepsWhatItsContainerStartedWith(t *testing.T) {
	beneathtest.NeedMounts(t)
	c, root := &conf{}, t.TempDir()
	c.set("1", nil)
	m := confManager(t, root, c)
	pod := confPod("u", corev1.VolumeMount{Name: "conf", MountPath: "/c/key", SubPath: "key"})
	request := volume.ContainerMountsRequest{Pod: pod, Container: "app"}
	mustMount(t, m, pod, "conf")
	mounts, err := m.ContainerMounts(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	wantFile(t, mounts[0].HostPath, "1")
	c.set("2", nil)
	if _, err := m.Refresh(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	wantFile(t, confKey(root, "u"), "2")
	wantFile(t, mounts[0].HostPath, "1")
	if mounts, err = m.ContainerMounts(t.Context(), request); err != nil { // the next container
		t.Fatal(err)
	}
	wantFile(t, mounts[0].HostPath, "2")
	if err := m.RemovePodDir(t.Context(), "u"); err != nil {
		t.Fatal(err)
	}
	wantGone(t, filepath.Join(root, "pods/u"))
}

// clockPlugin is a volume whose content wants to be renewed each minute.
type clockPlugin struct {
	fakePlugin
	mounts  *atomic.Int32
	fails   *atomic.Bool
	mounted *atomic.Bool
}

func (p clockPlugin) Mount(context.Context, volume.MountRequest) (volume.MountResult, error) {
	p.mounts.Add(1)
	if p.fails.Load() {
		return volume.MountResult{}, errors.New("no token")
	}
	p.mounted.Store(true)
	return volume.MountResult{RefreshAt: time.Now().Add(time.Minute)}, nil
}

func (p clockPlugin) Mounted(context.Context, volume.MountedRequest) (volume.MountedResult, error) {
	return volume.MountedResult{Mounted: p.mounted.Load(), Follows: true}, nil
}

func newClock() clockPlugin {
	return clockPlugin{fakePlugin{name: "vendor/clock"}, &atomic.Int32{}, &atomic.Bool{}, &atomic.Bool{}}
}

// upkeepBench runs a manager with that plugin in a bubble of fake time.
func upkeepBench(t *testing.T, p clockPlugin, failed func(*corev1.Pod, error)) *volume.Manager {
	t.Helper()
	m, err := volume.New(volume.Config{RootDir: "/nowhere/at/all", Observer: volume.Observer{RefreshFailed: failed}},
		[]volume.Plugin{p}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
	})
	return m
}

// pass lets the bubble's time go on.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func wantMounts(t *testing.T, p clockPlugin, least, most int32) {
	t.Helper()
	synctest.Wait()
	if n := p.mounts.Load(); n < least || n > most {
		t.Errorf("%d calls of Mount, want %d to %d", n, least, most)
	}
}

func TestContentIsRenewedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newClock()
		m := upkeepBench(t, p, nil)
		pod := newPod("u", "")
		mustMount(t, m, pod, "data")
		m.Follow(pod) // known from its mount
		wantMounts(t, p, 1, 1)
		pass(10*time.Minute + 30*time.Second)
		wantMounts(t, p, 10, 11)
		m.Follow(newPod("u", "")) // its metadata changed
		wantMounts(t, p, 11, 12)
		m.Changed("u")
		wantMounts(t, p, 12, 13)
		m.Changed("stranger")
		if err := m.Unmount(t.Context(), "u", "data"); err != nil {
			t.Fatal(err)
		}
		p.mounted.Store(false)
		pass(time.Hour)
		wantMounts(t, p, 12, 13)
	})
}

// A new agent hears of the pod from its status, and refreshes what is mounted.
func TestFollowAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newClock()
		m := upkeepBench(t, p, nil)
		m.Follow(newPod("unmounted", ""))
		wantMounts(t, p, 0, 0)
		p.mounted.Store(true)
		m.Follow(newPod("u", ""))
		wantMounts(t, p, 1, 1)
		pass(70 * time.Second)
		wantMounts(t, p, 2, 2)
	})
}

func TestRefreshThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newClock()
		var told []string
		m := upkeepBench(t, p, func(pod *corev1.Pod, err error) { told = append(told, string(pod.UID)+" "+err.Error()) })
		mustMount(t, m, newPod("u", ""), "data")
		p.fails.Store(true)
		pass(time.Hour)
		wantMounts(t, p, 30, 45) // at most every two minutes
		if len(told) != int(p.mounts.Load())-1 || told[0] != `u MountVolume.SetUp failed for volume "data" : no token` {
			t.Errorf("told %d times: %s", len(told), told[0])
		}
		p.fails.Store(false)
		before := p.mounts.Load()
		m.Changed("u") // an object appeared: at once
		wantMounts(t, p, before+1, before+1)
		pass(65 * time.Second)
		wantMounts(t, p, before+2, before+2)
	})
}
