package wire_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"nodekit.dev/node/wire"
)

func TestCompleteCopiesWhatPartsShare(t *testing.T) {
	cfg := config(t, "unix:///run/x.sock")
	cfg.Host.Hosts = true
	cfg.Log = slog.New(slog.DiscardHandler)
	got, err := cfg.Complete()
	must(t, err)
	for name, dir := range map[string]string{
		"node": got.Node.RootDir, "podspec": got.Spec.RootDir, "volume": got.Volume.RootDir,
	} {
		if dir != cfg.RootDir {
			t.Errorf("%s's RootDir is %q", name, dir)
		}
	}
	for name, log := range map[string]*slog.Logger{
		"cri": got.CRI.Log, "observe": got.Observe.Log, "images": got.Images.Log, "logs": got.Logs.Log,
	} {
		if log != cfg.Log {
			t.Errorf("%s has another logger", name)
		}
	}
	if got.Spec.NodeName != "node-1" || got.Spec.PodLogsDir != cfg.PodLogsDir || !got.Spec.ManageHosts ||
		!reflect.DeepEqual(got.Node.Rules.HostIPs, cfg.NodeIPs) || !reflect.DeepEqual(got.Spec.NodeIPs, cfg.NodeIPs) ||
		got.Cgroups.Names != got.Spec.Cgroups {
		t.Errorf("not all was copied: %+v", got)
	}
	if got.Spec.MachineMemory <= 0 || got.Spec.ContainerHash == nil || got.Spec.Allocatable.Cpu().IsZero() {
		t.Errorf("facts about the machine are missing: %+v", got.Spec)
	}
	again, err := got.Complete()
	must(t, err)
	if again.Spec.MachineMemory != got.Spec.MachineMemory || !reflect.DeepEqual(again.Spec.HugepageSizes, got.Spec.HugepageSizes) {
		t.Error("a second call changes the result")
	}
}

func TestCompleteKeepsWhatIsSet(t *testing.T) {
	cfg := config(t, "unix:///run/x.sock")
	cfg.Spec.MachineMemory = 1 << 30
	cfg.Spec.HugepageSizes = []string{"2MB"}
	got, err := cfg.Complete()
	must(t, err)
	if got.Spec.MachineMemory != 1<<30 || len(got.Spec.HugepageSizes) != 1 {
		t.Errorf("changed to %d, %v", got.Spec.MachineMemory, got.Spec.HugepageSizes)
	}
	if memory := got.Spec.Allocatable.Memory().Value(); memory != 1<<30 {
		t.Errorf("allocatable memory %d", memory)
	}
}

func TestCompleteNamesAllThatIsWrong(t *testing.T) {
	_, err := wire.Config{RootDir: "relative"}.Complete()
	if err == nil {
		t.Fatal("no error")
	}
	want := "NodeName: must not be empty\nRootDir: \"relative\" must be an absolute path\nPodLogsDir: \"\" must be an absolute path"
	if err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "root")
	unlock, err := wire.Lock(dir, "first")
	must(t, err)
	_, err = wire.Lock(dir, "second")
	var locked *wire.LockedError
	if !errors.As(err, &locked) || !strings.HasPrefix(locked.Owner, "first (pid ") || locked.Dir != dir {
		t.Fatalf("error %v, want one that names the first agent", err)
	}
	must(t, unlock())
	unlock, err = wire.Lock(dir, "third")
	must(t, err)
	_, err = wire.Lock(dir, "fourth")
	if !errors.As(err, &locked) || !strings.HasPrefix(locked.Owner, "third (pid ") {
		t.Errorf("error %v, want one that names the third agent", err)
	}
	must(t, unlock())

	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if _, err := wire.Lock(file, "x"); err == nil {
		t.Error("a file was locked as a directory")
	}
}

func TestPodDirs(t *testing.T) {
	root := t.TempDir()
	uids, err := wire.PodDirs(wire.Config{RootDir: root}).ListPodDirs(t.Context())
	if err != nil || len(uids) != 0 {
		t.Errorf("without a directory: %v, %v", uids, err)
	}
	for _, dir := range []string{"pods/b", "pods/a/volumes"} {
		must(t, os.MkdirAll(filepath.Join(root, dir), 0o750))
	}
	must(t, os.WriteFile(filepath.Join(root, "pods/file"), nil, 0o600))
	must(t, os.Symlink(t.TempDir(), filepath.Join(root, "pods/link"))) // no pod's, whatever it leads to
	uids, err = wire.PodDirs(wire.Config{RootDir: root}).ListPodDirs(t.Context())
	if err != nil || !reflect.DeepEqual(uids, []string{"a", "b"}) {
		t.Errorf("UIDs %v, %v", uids, err)
	}
	blocked := filepath.Join(root, "pods/file")
	if _, err := wire.PodDirs(wire.Config{RootDir: blocked}).ListPodDirs(t.Context()); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("below a file: %v", err)
	}

	cfg := wire.Default()
	cfg.RootDir, cfg.Host.PodCgroups, cfg.Cgroups.Mount = root, true, t.TempDir()
	must(t, os.MkdirAll(filepath.Join(cfg.Cgroups.Mount, "memory/kubepods/burstable/podc"), 0o755))
	must(t, os.WriteFile(filepath.Join(cfg.Cgroups.Mount, "memory/cgroup.procs"), nil, 0o600))
	uids, err = wire.PodDirs(cfg).ListPodDirs(t.Context())
	if err != nil || !reflect.DeepEqual(uids, []string{"a", "b", "c"}) {
		t.Errorf("with a cgroup that has no directory: UIDs %v, %v", uids, err)
	}
}
