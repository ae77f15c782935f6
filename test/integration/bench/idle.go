package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/test/integration/testbed"
)

// Footprint is what a process that has nothing to do takes.
type Footprint struct {
	RSS      Memory  // median over the window
	MilliCPU float64 // thousandths of one CPU, over the window
}

// Memory is a process's resident memory in bytes.
type Memory struct {
	Total int64
	Anon  int64 // heap, stacks: what the process itself made
	File  int64 // the pages of the program that it touched
}

// idle is cmd/kubelet without and with pods, and what it took through the folder.
type idle struct {
	Empty, Full Footprint
	// AllRunning is from the renaming of the first manifest until all
	// containers ran, AllGone from the first removal until no sandbox was left.
	AllRunning, AllGone time.Duration
}

// settle is how long an agent is left alone before it counts as idle.
const settle = 10 * time.Second

// idleKubelet measures cmd/kubelet on the bed, without and with pods.
func idleKubelet(ctx context.Context, bed *testbed.Bed, pods int, window time.Duration) (out idle, err error) {
	folder := filepath.Join(bed.Dir, "kubelet-manifests")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return out, err
	}
	program, err := Stripped(ctx, bed.Dir, "./cmd/kubelet")
	if err != nil {
		return out, err
	}
	kubelet, err := testbed.StartAgent(ctx, bed, testbed.AgentOptions{
		Manifests: folder, Program: program, Root: filepath.Join(bed.Dir, "kubelet-root"), Flags: []string{"--v=2"},
		Config: map[string]any{"logging": map[string]any{"flushFrequency": "5s"}}, // as it is by default
	})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, kubelet.Stop(context.WithoutCancel(ctx))) }()
	if out.Empty, err = Measure(ctx, kubelet.PID(), window); err != nil {
		return out, err
	}
	idlePod := func(i int) *corev1.Pod { return newPod(fmt.Sprintf("idle-%d", i), "") }
	if out.AllRunning, err = fill(ctx, bed, folder, pods, idlePod); err != nil {
		return out, fmt.Errorf("%w\n%s", err, kubelet.Log(30))
	}
	if out.Full, err = Measure(ctx, kubelet.PID(), window); err != nil {
		return out, err
	}
	out.AllGone, err = empty(ctx, bed, folder)
	return out, err
}

// fill puts manifests of so many pods into the folder. It asks the runtime
// when they run, so that the agent has nothing to do but its work.
func fill(ctx context.Context, bed *testbed.Bed, folder string, pods int, pod func(i int) *corev1.Pod) (time.Duration, error) {
	var files []manifest
	for i := range pods {
		file, err := stageManifest(folder, pod(i))
		if err != nil {
			return 0, err
		}
		files = append(files, file)
	}
	began := time.Now()
	for _, f := range files {
		if err := os.Rename(f.staged, f.path); err != nil {
			return 0, err
		}
	}
	running := &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	}}
	err := eventually(ctx, func(ctx context.Context) error {
		list, err := bed.CRI().ListContainers(ctx, running)
		if n := len(list.GetContainers()); err == nil && n != pods {
			err = fmt.Errorf("%d of %d containers run", n, pods)
		}
		return err
	})
	return time.Since(began), err
}

// empty takes all manifests away.
func empty(ctx context.Context, bed *testbed.Bed, folder string) (time.Duration, error) {
	began := time.Now()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			return 0, err
		}
	}
	err = eventually(ctx, func(ctx context.Context) error {
		list, err := bed.CRI().ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
		if n := len(list.GetItems()); err == nil && n > 0 {
			err = fmt.Errorf("%d sandboxes are left", n)
		}
		return err
	})
	return time.Since(began), err
}

func eventually(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	return testbed.Eventually(ctx, 50*time.Millisecond, check)
}

// Measure looks at a process that has nothing to do.
func Measure(ctx context.Context, pid int, window time.Duration) (Footprint, error) {
	var out Footprint
	if err := Pass(ctx, settle); err != nil {
		return out, err
	}
	before, err := CPUTime(pid)
	if err != nil {
		return out, err
	}
	began := time.Now()
	var totals, anons, files []int64
	for time.Since(began) < window {
		if err := Pass(ctx, time.Second); err != nil {
			return out, err
		}
		rss, err := residentMemory(pid)
		if err != nil {
			return out, err
		}
		totals, anons, files = append(totals, rss.Total), append(anons, rss.Anon), append(files, rss.File)
	}
	after, err := CPUTime(pid)
	out.MilliCPU = float64(after-before) / float64(time.Since(began)) * 1000
	out.RSS = Memory{Total: Median(totals), Anon: Median(anons), File: Median(files)}
	return out, err
}

// Pass lets time pass.
func Pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// CPUTime is the CPU time that a process has used: the sum of its threads',
// which the kernel counts in nanoseconds. Go's threads do not end.
func CPUTime(pid int) (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	if len(threads) == 0 {
		return 0, fmt.Errorf("process %d has no threads", pid)
	}
	var sum int64
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		ran, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(ran, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		sum += ns
	}
	return time.Duration(sum), nil
}

func residentMemory(pid int) (Memory, error) {
	var m Memory
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return m, err
	}
	for _, field := range []struct {
		name string
		to   *int64
	}{{"VmRSS:", &m.Total}, {"RssAnon:", &m.Anon}, {"RssFile:", &m.File}} {
		_, rest, found := strings.Cut(string(text), field.name)
		words := strings.Fields(rest)
		if !found || len(words) == 0 {
			return m, fmt.Errorf("process %d: no %s", pid, field.name)
		}
		kib, err := strconv.ParseInt(words[0], 10, 64)
		if err != nil {
			return m, fmt.Errorf("process %d: %s %w", pid, field.name, err)
		}
		*field.to = kib << 10
	}
	return m, nil
}
