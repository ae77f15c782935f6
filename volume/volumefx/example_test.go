package volumefx_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/fxrun"
	"nodekit.dev/node"
	"nodekit.dev/node/podspec"
	"nodekit.dev/node/wire"
	"nodekit.dev/volume/volumefx"
)

// The mounter of the graph mounts an emptyDir.
func Example() {
	root, err := os.MkdirTemp("", "volumes")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	cfg := wire.Default()
	cfg.NodeName, cfg.RootDir = "edge-1", root
	if cfg, err = cfg.Complete(); err != nil {
		fmt.Println(err)
		return
	}
	var mounter node.Mounter
	app := fx.New(
		fx.WithLogger(func() fxevent.Logger { return fxevent.NopLogger }),
		fx.Supply(cfg, slog.New(slog.DiscardHandler), fxrun.New(time.Second)),
		fx.Provide(func() (*podspec.Builder, error) { return podspec.New(cfg.Spec) }),
		volumefx.Module(),
		fx.Populate(&mounter),
	)
	if app.Err() != nil {
		fmt.Println(app.Err())
		return
	}
	pod := &corev1.Pod{}
	pod.UID = "1"
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	result, err := mounter.Mount(context.Background(), node.MountRequest{Pod: pod, Volume: "data"})
	if err != nil {
		fmt.Println(err)
		return
	}
	info, err := os.Stat(result.HostPath)
	fmt.Println(result.HostPath[len(root):], info.IsDir(), err)
	// Output: /pods/1/volumes/kubernetes.io~empty-dir/data true <nil>
}
