package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/examples/internal/exampletest"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime/runtimetest"
	"nodekit.dev/volume"
	"nodekit.dev/volume/volumetest"
)

func TestMain(m *testing.M) { os.Exit(volumetest.Main(m)) }

// TestContract is all that a plugin's own test needs.
func TestContract(t *testing.T) {
	volumetest.Suite(t, func(*testing.T) volumetest.Subject {
		return volumetest.Subject{Plugin: scratch{}, Source: func(int) volume.Source {
			return volume.Source{Volume: corev1.Volume{Name: "work", VolumeSource: corev1.VolumeSource{
				FlexVolume: &corev1.FlexVolumeSource{Driver: driver},
			}}}
		}}
	})
}

func TestAgentWithThePlugin(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount")
	}
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	cfg := wire.Default()
	cfg.NodeName, cfg.NodeIPs = "volume-plugin", []string{"192.0.2.1"}
	cfg.RootDir, cfg.PodLogsDir = t.TempDir(), t.TempDir()
	cfg.CRI.Endpoint = w.Serve(t, t.TempDir()).Endpoint()
	program := exampletest.Run(t, func(ctx context.Context, out io.Writer) error { return run(ctx, cfg, "busybox", out) })
	program.Await("default/scratch: Running\n")
	program.Stop()
	exampletest.Pod(t, w, "scratch")
	dir := filepath.Join(cfg.RootDir, "pods/33333333-3333-3333-3333-333333333333/volumes/example.com~scratch/work")
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil || st.Type != unix.TMPFS_MAGIC || int64(st.Blocks)*st.Bsize != 32<<20 {
		t.Errorf("the volume is of type %x with %d blocks, %v", st.Type, st.Blocks, err)
	}
	if err := unix.Unmount(dir, 0); err != nil { // pods outlive the agent
		t.Error(err)
	}
}
