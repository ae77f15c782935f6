package volumetest_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/internal/beneath/beneathtest"
	"nodekit.dev/internal/needtest"
	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
	"nodekit.dev/volume/volumetest"
)

func TestMain(m *testing.M) { os.Exit(volumetest.Main(m)) }

// objects are a ConfigMap and a Secret that every namespace has, and an image.
type objects struct{}

func (objects) ConfigMap(context.Context, types.UID, string, string) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{Data: map[string]string{"a": "1"}}, nil
}

func (objects) Secret(context.Context, types.UID, string, string) (*corev1.Secret, error) {
	return &corev1.Secret{Data: map[string][]byte{"a": []byte("1")}}, nil
}

func (objects) Image(context.Context, *corev1.Pod, corev1.ImageVolumeSource) (string, error) {
	return "sha256:1", nil
}

func pv(change func(*corev1.PersistentVolumeSpec)) volume.Source {
	v := &corev1.PersistentVolume{}
	v.Name = "pv"
	change(&v.Spec)
	return volume.Source{PersistentVolume: v}
}

// TestStockPlugins holds the plugins that come with nodekit against the contract.
func TestStockPlugins(t *testing.T) {
	pod := func(v corev1.VolumeSource) func(*testing.T) func(int) volume.Source {
		return func(*testing.T) func(int) volume.Source {
			return func(int) volume.Source { return volume.Source{Volume: corev1.Volume{Name: "data", VolumeSource: v}} }
		}
	}
	for name, sources := range map[string]func(*testing.T) func(int) volume.Source{
		"emptyDir":  pod(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}),
		"memory":    pod(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}),
		"hostPath":  pod(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc"}}),
		"configMap": pod(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}),
		"secret":    pod(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}),
		"downward": pod(corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "name", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}}),
		"projected": pod(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{}}}}}),
		"image":     pod(corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "models:1"}}),
		"local": func(t *testing.T) func(int) volume.Source {
			dir := t.TempDir()
			return func(n int) volume.Source {
				path := filepath.Join(dir, fmt.Sprint(n))
				if err := os.MkdirAll(path, 0o755); err != nil {
					t.Error(err)
				}
				return pv(func(s *corev1.PersistentVolumeSpec) { s.Local = &corev1.LocalVolumeSource{Path: path} })
			}
		},
		"block": func(t *testing.T) func(int) volume.Source {
			device := filepath.Join(t.TempDir(), "disk")
			if err := unix.Mknod(device, unix.S_IFBLK|0o600, int(unix.Mkdev(7, 0))); err != nil {
				needtest.SkipOrFail(t, "needs root to make a device node: "+err.Error())
			}
			return func(int) volume.Source {
				return pv(func(s *corev1.PersistentVolumeSpec) {
					s.Local, s.VolumeMode = &corev1.LocalVolumeSource{Path: device}, new(corev1.PersistentVolumeBlock)
				})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			volumetest.Suite(t, func(t *testing.T) volumetest.Subject {
				source := sources(t)
				restart := func() volume.Plugin { return stock(source(0)) }
				return volumetest.Subject{Plugin: restart(), Source: source, Restart: restart}
			})
		})
	}
}

// stock makes the plugin for a source.
func stock(s volume.Source) volume.Plugin {
	all := plugins.Stock(plugins.Sources{ConfigMaps: objects{}, Secrets: objects{}, Images: objects{}})
	return all[slices.IndexFunc(all, func(p volume.Plugin) bool { return p.Supports(s) })]
}

// broken is an emptyDir plugin with one fault.
type broken struct {
	plugins.EmptyDir
	how string
	dir sync.Map // the directories of volumes, in memory
}

func (b *broken) knows(dir string) bool {
	_, known := b.dir.Load(dir)
	return known
}

func (b *broken) Supports(s volume.Source) bool {
	return b.how == "takes all" || b.EmptyDir.Supports(s)
}

func (b *broken) Mount(ctx context.Context, req volume.MountRequest) (volume.MountResult, error) {
	switch b.how {
	case "mounts again":
		result, err := b.EmptyDir.Mount(ctx, req)
		return result, errors.Join(err, unix.Mount("tmpfs", req.Dir, "tmpfs", 0, ""))
	case "fails where something is":
		if _, err := os.Lstat(req.Dir); err == nil && !b.knows(req.Dir) {
			return volume.MountResult{}, fs.ErrExist
		}
	case "is nowhere":
		return volume.MountResult{HostPath: req.Dir + "-x"}, nil
	case "ignores its context":
		<-context.WithoutCancel(ctx).Done()
	}
	b.dir.Store(req.Dir, true)
	return b.EmptyDir.Mount(ctx, req)
}

func (b *broken) Mounted(ctx context.Context, req volume.MountedRequest) (volume.MountedResult, error) {
	if b.how == "remembers" {
		return volume.MountedResult{Mounted: b.knows(req.Dir), HostPath: req.Dir}, nil
	}
	return b.EmptyDir.Mounted(ctx, req)
}

func (b *broken) Unmount(ctx context.Context, req volume.UnmountRequest) error {
	switch b.how {
	case "unmounts once":
		if _, err := os.Lstat(req.Dir); err != nil {
			return err
		}
	case "leaves its directory":
		return nil
	case "moves aside":
		return errors.Join(os.MkdirAll(req.Dir, 0o755), os.Rename(req.Dir, req.Dir+".old"))
	case "removes all":
		return os.RemoveAll(req.Dir)
	case "needs its memory":
		if !b.knows(req.Dir) {
			return errors.New("who?")
		}
	}
	b.dir.Delete(req.Dir)
	for range req.Mounts {
		if b.how == "mounts again" {
			_ = unix.Unmount(req.Dir, 0)
		}
	}
	if b.how == "mounts again" {
		req.Mounts = nil
	}
	return b.EmptyDir.Unmount(ctx, req)
}

const plantedEnv = "NODEKIT_TEST_PLANTED_PLUGIN"

// TestPlanted is run by TestPlantedPluginsAreFound, with a fault.
func TestPlanted(t *testing.T) {
	how := os.Getenv(plantedEnv)
	if how == "" {
		t.Skip("only as a child of TestPlantedPluginsAreFound")
	}
	volumetest.Suite(t, func(*testing.T) volumetest.Subject {
		made := func() volume.Plugin { return &broken{how: how} }
		return volumetest.Subject{Plugin: made(), Restart: made, Source: func(int) volume.Source {
			return volume.Source{Volume: corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		}}
	})
}

// TestPlantedPluginsAreFound: for each fault, the case that finds it.
func TestPlantedPluginsAreFound(t *testing.T) {
	beneathtest.NeedMounts(t)
	for how, found := range map[string]string{
		"none":                     "",
		"takes all":                "Names",
		"mounts again":             "MountAgain",
		"is nowhere":               "MountAgain",
		"remembers":                "Restart",
		"needs its memory":         "Restart",
		"fails where something is": "HalfMounted",
		"unmounts once":            "UnmountAgain",
		"leaves its directory":     "UnmountAgain",
		"moves aside":              "UnmountAgain",
		"removes all":              "NothingIsRemovedThroughAMount",
	} {
		t.Run(how, func(t *testing.T) {
			child := exec.Command("/proc/self/exe", "-test.run=^TestPlanted$", "-test.v")
			child.Env = append(os.Environ(), plantedEnv+"="+how)
			out, err := child.CombinedOutput()
			if found == "" {
				if err != nil {
					t.Fatalf("a sound plugin fails: %v\n%s", err, out)
				}
				return
			}
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestPlanted/"+found+" ") {
				t.Errorf("%s did not find it: %v\n%s", found, err, out)
			}
		})
	}
}
