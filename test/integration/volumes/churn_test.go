package volumes

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/internal/beneath/beneathtest"
	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
)

const (
	churnEnv = "NODEKIT_TEST_CHURN" // the child's root directory
	podCount = 20                   // each with 5 volumes
	workers  = 8
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(churnEnv); dir != "" {
		fmt.Println("failed:", churn(dir)) // it never ends but for an error
		os.Exit(1)
	}
	os.Exit(beneathtest.Main(m))
}

// rounds is how often the child is killed.
func rounds() int {
	if os.Getenv("NODEKIT_SOAK") != "" {
		return 100
	}
	return 5
}

// TestKilledWhileItMounts kills a process with SIGKILL that mounts and unmounts
// 100 volumes all the time, and lets the next one go on. In the end nothing is
// mounted, nothing is left, and no file that is not the pods' own is lost.
func TestKilledWhileItMounts(t *testing.T) {
	beneathtest.NeedMounts(t)
	dir := t.TempDir()
	precious := plant(t, dir)
	half := 0 // pods that were found on their way up or down
	for round := range rounds() {
		killOne(t, dir, round)
		half += halfWay(t, dir)
		if round%2 == 1 { // otherwise the next child has to cope with what is there
			clean(t, dir)
		}
		for path, text := range precious {
			if got, err := os.ReadFile(path); err != nil || string(got) != text {
				t.Fatalf("round %d: %s: %q, %v", round, path, got, err)
			}
		}
	}
	clean(t, dir)
	t.Logf("%d pods were half mounted after %d kills", half, rounds())
	if half == 0 {
		t.Error("no kill hit a mount or an unmount: the test shows nothing")
	}
}

// halfWay counts pods of which not all is mounted.
func halfWay(t *testing.T, dir string) (n int) {
	t.Helper()
	m, err := manager(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range podCount {
		mounted, err := m.Mounted(t.Context(), string(pod(dir, i).UID))
		if err != nil {
			t.Fatal(err)
		}
		if len(mounted) < 5 { // all but the hostPath without its subPaths
			n++
		}
	}
	return n
}

// plant makes the files of the host that pods have in their volumes.
func plant(t *testing.T, dir string) map[string]string {
	t.Helper()
	precious := map[string]string{}
	for i := range podCount {
		for _, kind := range []string{"host/conf", "disk"} {
			path := filepath.Join(dir, kind, fmt.Sprint(i), "file")
			precious[path] = path
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(path), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return precious
}

// killOne runs a child until it churns, and a little longer.
func killOne(t *testing.T, dir string, round int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), churnEnv+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "churning" {
		t.Errorf("round %d: %s", round, lines.Text())
	}
	<-time.After(time.Duration(rand.Int64N(int64(150 * time.Millisecond))))
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	for lines.Scan() { // what it said before it died
		t.Errorf("round %d: %s", round, lines.Text())
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("round %d: the child ended by itself: %v\n%s", round, err, &complaints)
	}
}

// clean removes all pods, as an agent does with those that nobody names any more.
func clean(t *testing.T, dir string) {
	t.Helper()
	m, err := manager(dir)
	if err != nil {
		t.Fatal(err)
	}
	pods, err := os.ReadDir(filepath.Join(dir, "root/pods"))
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		if err := m.RemovePodDir(context.WithoutCancel(t.Context()), pod.Name()); err != nil {
			t.Errorf("%s: %v", pod.Name(), err)
		}
	}
	if mounts, err := (volume.HostMounter{}).MountPoints(dir); err != nil || len(mounts) > 0 {
		t.Fatalf("still mounted: %v, %v", mounts, err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "root/pods")); err != nil || len(left) > 0 {
		t.Fatalf("still there: %v, %v", left, err)
	}
}

func manager(dir string) (*volume.Manager, error) {
	all := append(plugins.Default(), plugins.FromObjects(plugins.Sources{ConfigMaps: objects{}, Secrets: objects{}})...)
	return volume.New(volume.Config{RootDir: filepath.Join(dir, "root"), Claims: disks{dir}}, all, slog.New(slog.DiscardHandler))
}

// objects are the same for everybody.
type objects struct{}

func (objects) ConfigMap(_ context.Context, _ types.UID, _, name string) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{Data: map[string]string{"a": name, "b": strings.Repeat("b", 10_000)}}, nil
}

func (objects) Secret(_ context.Context, _ types.UID, _, name string) (*corev1.Secret, error) {
	return &corev1.Secret{Data: map[string][]byte{"s": []byte(name)}}, nil
}

// disks are local PersistentVolumes, one for each claim.
type disks struct{ dir string }

func (d disks) Claimed(_ context.Context, pod *corev1.Pod, v corev1.Volume) (volume.Source, error) {
	pv := &corev1.PersistentVolume{}
	pv.Name = "pv-" + v.PersistentVolumeClaim.ClaimName
	pv.Spec.Local = &corev1.LocalVolumeSource{Path: filepath.Join(d.dir, "disk", v.PersistentVolumeClaim.ClaimName)}
	return volume.Source{Volume: v, PersistentVolume: pv, Claim: volume.Claim{Namespace: pod.Namespace, Name: v.PersistentVolumeClaim.ClaimName}}, nil
}

// pod has five volumes: an empty one or a ConfigMap, in memory, of two objects in one, of the host
// with subPaths, and a disk of its own.
func pod(dir string, i int) *corev1.Pod {
	n := fmt.Sprint(i)
	p := &corev1.Pod{}
	p.Namespace, p.Name, p.UID = "ns", "pod-"+n, types.UID("uid-"+n)
	object := corev1.LocalObjectReference{Name: "o" + n}
	p.Spec.Volumes = []corev1.Volume{
		{Name: "conf", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: object}}},
		{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: object.Name}}},
		{Name: "both", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: object}}, {Secret: &corev1.SecretProjection{LocalObjectReference: object}},
		}}}},
		{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: filepath.Join(dir, "host")}}},
		{Name: "disk", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: n}}},
	}
	if i%2 == 0 {
		empty := &corev1.EmptyDirVolumeSource{}
		if i%4 == 0 {
			empty.Medium = corev1.StorageMediumMemory
		}
		p.Spec.Volumes[0] = corev1.Volume{Name: "conf", VolumeSource: corev1.VolumeSource{EmptyDir: empty}}
	}
	p.Spec.Containers = []corev1.Container{{Name: "app", VolumeMounts: []corev1.VolumeMount{
		{Name: "host", MountPath: "/h", SubPath: "conf/" + n}, {Name: "host", MountPath: "/f", SubPath: "conf/" + n + "/file"},
		{Name: "disk", MountPath: "/d"}, {Name: "secret", MountPath: "/s"}, {Name: "both", MountPath: "/b", SubPath: "a"},
		{Name: "conf", MountPath: "/c"},
	}}}
	return p
}

// churn goes on where an earlier process ended, and then mounts and unmounts for
// ever.
func churn(dir string) error {
	m, err := manager(dir)
	if err != nil {
		return err
	}
	ctx := context.Background()
	for i := range podCount {
		if err := errors.Join(up(ctx, m, dir, i), check(ctx, m, dir, i)); err != nil {
			return err
		}
	}
	fmt.Println("churning")
	failed := make(chan error, workers)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for {
				for i := w; i < podCount; i += workers {
					if err := turn(ctx, m, dir, i); err != nil {
						failed <- err
						return
					}
				}
			}
		})
	}
	return <-failed
}

// turn takes a pod away, in one of two ways, and brings it back.
func turn(ctx context.Context, m *volume.Manager, dir string, i int) error {
	p := pod(dir, i)
	if rand.IntN(2) == 0 {
		for _, v := range p.Spec.Volumes {
			if err := m.Unmount(ctx, string(p.UID), v.Name); err != nil {
				return err
			}
		}
	}
	return errors.Join(m.RemovePodDir(ctx, string(p.UID)), up(ctx, m, dir, i), check(ctx, m, dir, i))
}

func up(ctx context.Context, m *volume.Manager, dir string, i int) error {
	p := pod(dir, i)
	errs := make([]error, len(p.Spec.Volumes))
	var all sync.WaitGroup
	for j, v := range p.Spec.Volumes {
		all.Go(func() { _, errs[j] = m.Mount(ctx, p, v.Name) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// check reads what a container would.
func check(ctx context.Context, m *volume.Manager, dir string, i int) error {
	mounts, err := m.ContainerMounts(ctx, volume.ContainerMountsRequest{Pod: pod(dir, i), Container: "app"})
	if err != nil {
		return err
	}
	n := fmt.Sprint(i)
	host, disk := filepath.Join(dir, "host/conf", n, "file"), filepath.Join(dir, "disk", n, "file")
	for j, want := range []struct{ file, text string }{{"file", host}, {"", host}, {"file", disk}, {"s", "o" + n}, {"", "o" + n}} {
		if got, err := os.ReadFile(filepath.Join(mounts[j].HostPath, want.file)); err != nil || string(got) != want.text {
			return fmt.Errorf("pod %d, %s: %q, %w", i, mounts[j].ContainerPath, got, err)
		}
	}
	return os.WriteFile(filepath.Join(mounts[5].HostPath, "own"), []byte("x"), fs.ModePerm)
}
