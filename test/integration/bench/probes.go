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

	"nodekit.dev/test/bench/probes"
	"nodekit.dev/test/integration/testbed"
)

// probes measures thousands of probes over the network.
func (r *run) probes(ctx context.Context) error {
	program, err := Stripped(ctx, r.bed.Dir, "./test/bench/probes/servers")
	if err != nil {
		return err
	}
	got, err := probes.Measure(ctx, probes.Options{Servers: program})
	if err != nil {
		return err
	}
	micros := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	r.report.Add("10,000 HTTP and TCP probes: lateness, p99", Millis(got.LateP99), "ms", AtMost(50),
		Note("of %d checks; median %.1f ms, most %.1f ms", got.Checks, Millis(got.LateMedian), Millis(got.LateMax)))
	r.report.Add("10,000 probes: failed checks", float64(got.Failed), "", AtMost(.5))
	r.report.Add("10,000 probes: sockets in TIME_WAIT", float64(got.TimeWait), "", AtMost(100))
	r.report.Add("10,000 probes: goroutines at rest", float64(got.AtRest), "", AtMost(50), Note("median %d", got.Goroutines))
	r.report.Add("10,000 probes: CPU per check", micros(got.CPU), "µs", Note("%.0f bytes in %.0f objects allocated", got.Bytes, got.Objects))
	return nil
}

// execPods run a command each second each: the most that a node has by default.
const execPods = 110

// exec measures what probes by commands cost the agent, beside the bare call.
func (r *run) exec(ctx context.Context) (err error) {
	if err := r.stopAgent(ctx); err != nil { // two agents on one runtime end each other's pods
		return err
	}
	folder := filepath.Join(r.bed.Dir, "exec-manifests")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	program, err := Stripped(ctx, r.bed.Dir, "./cmd/kubelet")
	if err != nil {
		return err
	}
	kubelet, err := testbed.StartAgent(ctx, r.bed, testbed.AgentOptions{
		Manifests: folder, Program: program, Root: filepath.Join(r.bed.Dir, "exec-root"), Flags: []string{"--v=2"},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kubelet.Stop(context.WithoutCancel(ctx))) }()
	if _, err := fill(ctx, r.bed, folder, execPods, execPod); err != nil {
		return fmt.Errorf("%w\n%s", err, kubelet.Log(30))
	}
	bare, err := bareExec(ctx, r.bed)
	if err != nil {
		return err
	}
	if err := r.execWindow(ctx, kubelet, bare); err != nil {
		return err
	}
	_, err = empty(ctx, r.bed, folder)
	return err
}

func execPod(i int) *corev1.Pod {
	pod := newPod(fmt.Sprintf("exec-%d", i), "")
	c := &pod.Spec.Containers[0]
	c.Image, c.Command = testbed.BusyboxImage, []string{"sleep", "100000"}
	c.ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}},
		PeriodSeconds: 1, TimeoutSeconds: 1,
	}
	grace := int64(0)
	pod.Spec.TerminationGracePeriodSeconds = &grace
	return pod
}

// execWindow measures the probes for a while.
func (r *run) execWindow(ctx context.Context, kubelet *testbed.Agent, bare bareCall) error {
	if err := Pass(ctx, settle); err != nil {
		return err
	}
	before, err := readProbes(ctx, kubelet)
	if err != nil {
		return err
	}
	cpu, err := CPUTime(kubelet.PID())
	if err != nil {
		return err
	}
	if err := Pass(ctx, r.Window); err != nil {
		return err
	}
	cpuAfter, err := CPUTime(kubelet.PID())
	if err != nil {
		return err
	}
	after, err := readProbes(ctx, kubelet)
	if err != nil {
		return err
	}
	got := after.since(before)
	if got.made == 0 {
		return errors.New("no probe was made")
	}
	r.report.Add("1 s exec probes of 110 pods: made per second", got.made/r.Window.Seconds(), "",
		Note("a bare ExecSync took %.1f ms meanwhile, median; each waited %.0f ms for its turn", Millis(bare.took), 1000*got.waited/got.made))
	r.report.Add("1 s exec probes: failed", got.failed, "", AtMost(.5))
	r.report.Add("1 s exec probes: CPU of the agent per probe", 1000*(cpuAfter-cpu).Seconds()/got.made, "ms", Note("the bare call takes %.2f ms of its caller's", Millis(bare.cpu)))
	return nil
}

// bareCall is one ExecSync: its median time, and the CPU of who calls.
type bareCall struct{ took, cpu time.Duration }

// bareExec makes calls to the runtime beside the agent's.
func bareExec(ctx context.Context, bed *testbed.Bed) (out bareCall, err error) {
	list, err := bed.CRI().ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return out, err
	}
	cpu, err := CPUTime(os.Getpid())
	if err != nil {
		return out, err
	}
	var took []time.Duration
	for i := range 20 {
		c := list.GetContainers()[i%len(list.GetContainers())]
		began := time.Now()
		if _, err := bed.CRI().ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: c.GetId(), Cmd: []string{"true"}, Timeout: 60}); err != nil {
			return out, err
		}
		took = append(took, time.Since(began))
	}
	after, err := CPUTime(os.Getpid())
	return bareCall{Median(took), (after - cpu) / time.Duration(len(took))}, err
}

// probeCount is what /metrics/probes tells.
type probeCount struct{ made, failed, waited float64 }

func (p probeCount) since(before probeCount) probeCount {
	return probeCount{p.made - before.made, p.failed - before.failed, p.waited - before.waited}
}

func readProbes(ctx context.Context, kubelet *testbed.Agent) (probeCount, error) {
	text, err := kubelet.Get(ctx, "/metrics/probes")
	if err != nil {
		return probeCount{}, err
	}
	var out probeCount
	for line := range strings.Lines(text) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), "} ")
		value, err := strconv.ParseFloat(number, 64)
		switch {
		case err != nil:
		case strings.HasPrefix(name, "prober_probe_total"):
			out.made += value
			if !strings.Contains(name, `result="successful"`) {
				out.failed += value
			}
		case strings.HasPrefix(name, `nodekit_prober_queue_duration_seconds_sum{kind="exec"`):
			out.waited += value
		}
	}
	return out, nil
}
