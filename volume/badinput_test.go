package volume_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/internal/beneath/beneathtest"
	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
)

// raceTries is how often each attack on a subPath is tried.
const raceTries = 10_000

// TestSubPathRaces: 10,000 times for each attack, a container changes its volume
// while a subPath is prepared. Nothing of the host may come into the container, and
// nothing may be made outside of the volume.
func TestSubPathRaces(t *testing.T) {
	beneathtest.NeedMounts(t)
	for name, attack := range map[string]func(dir, outside string){
		// the last part is now the volume's own directory, now a symlink to the host
		"last part": func(dir, _ string) {
			exchange(filepath.Join(dir, "a/sub"), filepath.Join(dir, "evil"))
		},
		// what is to be made is made first, as a symlink
		"made first": func(dir, outside string) {
			link := filepath.Join(dir, "a/sub")
			_ = os.RemoveAll(link)
			_ = os.Symlink(outside, link)
			_ = os.Remove(link)
			for range 50 { // some time to make it, now and then
				_, _ = os.Lstat(dir)
			}
		},
		// the first part is now a directory, now a symlink that leads far up
		"first part": func(dir, _ string) {
			exchange(filepath.Join(dir, "a"), filepath.Join(dir, "up"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := newManager(t)
			outside := t.TempDir()
			write(t, filepath.Join(outside, "host-secret"), "")
			pod := newPod("u", "", subPathMount("data", "a/sub/deep"))
			dir := mustMount(t, m, pod, "data")
			write(t, filepath.Join(dir, "a/sub/deep/own"), "")
			if err := errors.Join(os.Symlink(outside, filepath.Join(dir, "evil")), os.Symlink(strings.Repeat("../", 40), filepath.Join(dir, "up"))); err != nil {
				t.Fatal(err)
			}
			stop := make(chan struct{})
			var attacker sync.WaitGroup
			attacker.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						attack(dir, outside)
					}
				}
			})
			good := 0
			tries := 0
			for ; tries < raceTries || good == 0 && tries < 20*raceTries; tries++ {
				mounts, err := containerMounts(t, m, pod)
				if err != nil {
					continue
				}
				good++
				for _, secret := range []string{"host-secret", "../host-secret"} {
					if _, err := os.Stat(filepath.Join(mounts[0].HostPath, secret)); err == nil {
						t.Fatalf("try %d: the host's directory is in the container", tries)
					}
				}
				if good%3 == 0 { // mount anew now and then
					if err := (volume.HostMounter{}).Unmount(mounts[0].HostPath); err != nil {
						t.Fatal(err)
					}
				}
			}
			close(stop)
			attacker.Wait()
			t.Logf("%d of %d prepared", good, tries)
			if good == 0 || good == tries {
				t.Errorf("%d of %d prepared: the test shows nothing", good, tries)
			}
			if err := m.RemovePodDir(context.WithoutCancel(t.Context()), "u"); err != nil {
				t.Fatal(err)
			}
			if names, err := os.ReadDir(outside); err != nil || len(names) != 1 {
				t.Errorf("outside of the volume: %v, %v", names, err)
			}
		})
	}
}

func exchange(a, b string) {
	_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// TestSubPathsAtTheLimits: what a name can just be works, one byte more is told.
func TestSubPathsAtTheLimits(t *testing.T) {
	beneathtest.NeedMounts(t)
	m, _ := newManager(t)
	longest := strings.Repeat("n", 255)
	for name, tc := range map[string]struct{ subPath, want string }{
		"longest name":   {longest, ""},
		"longer":         {longest + "n", "file name too long"},
		"longest path":   {strings.Repeat(longest+"/", 15) + "n", ""},
		"longer path":    {strings.Repeat(longest+"/", 17), "file name too long"},
		"dots":           {"...", ""},
		"one dot":        {"./.", ""},
		"up":             {"a/..", "must not contain '..'"},
		"only up":        {"..", "must not contain '..'"},
		"absolute":       {"/a", "must not be an absolute path"},
		"slashes":        {"a//b/", ""},
		"a byte of zero": {"a\x00b", "invalid argument"},
		"no text":        {"\xff\n", ""},
	} {
		pod := newPod("u", "", subPathMount("data", tc.subPath))
		dir := mustMount(t, m, pod, "data")
		mounts, err := containerMounts(t, m, pod)
		switch {
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || reasoned.Reason(err, "") != "CreateContainerConfigError"):
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.want == "":
			if _, err := os.Stat(mounts[0].HostPath); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if names, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(names) != 1 {
			t.Errorf("%s: beside the volume: %v, %v", name, names, err)
		}
		if err := m.RemovePodDir(context.WithoutCancel(t.Context()), "u"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// odd is one ConfigMap with one key.
type odd struct{}

func (odd) ConfigMap(context.Context, types.UID, string, string) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{Data: map[string]string{"key": "text"}}, nil
}

// TestItemsThatLeadOut: paths and modes that no file of a volume can have fail the
// mount, and touch nothing.
func TestItemsThatLeadOut(t *testing.T) {
	root := t.TempDir()
	m, err := volume.New(volume.Config{RootDir: root}, plugins.FromObjects(plugins.Sources{ConfigMaps: odd{}}), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for name, item := range map[string]corev1.KeyToPath{
		"up":              {Key: "key", Path: "../out"},
		"up in between":   {Key: "key", Path: "a/../../../out"},
		"absolute":        {Key: "key", Path: "/out"},
		"empty":           {Key: "key", Path: ""},
		"own link":        {Key: "key", Path: "..data"},
		"a name too far":  {Key: "key", Path: strings.Repeat("n", 256)},
		"no such key":     {Key: "none", Path: "x"},
		"a negative mode": {Key: "key", Path: "x", Mode: new(int32(-1))},
		"a mode too far":  {Key: "key", Path: "x", Mode: new(int32(0o1000))},
	} {
		pod := newPod("u", "")
		pod.Spec.Volumes = []corev1.Volume{{Name: "conf", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{Items: []corev1.KeyToPath{item}}}}}
		_, err := m.Mount(t.Context(), pod, "conf")
		if err == nil || reasoned.Reason(err, "") != "FailedMount" || !strings.HasPrefix(err.Error(), `MountVolume.SetUp failed for volume "conf" : `) {
			t.Errorf("%s: error %v", name, err)
		}
		if err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, _ error) error {
			if base := filepath.Base(path); base == "out" || base == "x" {
				return fmt.Errorf("%s was made", path)
			}
			return nil
		}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := m.RemovePodDir(context.WithoutCancel(t.Context()), "u"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"../u", "a/b", "", ".", ".."} {
		if _, err := m.Mount(t.Context(), newPod(name, ""), "data"); err == nil || !reasoned.Fatal(err) {
			t.Errorf("pod UID %q: error %v", name, err)
		}
	}
	if names, err := os.ReadDir(filepath.Join(root, "pods")); err != nil && !errors.Is(err, fs.ErrNotExist) || len(names) != 0 {
		t.Errorf("left: %v, %v", names, err)
	}
}
