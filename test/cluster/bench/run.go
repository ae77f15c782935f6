package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	measure "nodekit.dev/test/integration/bench"
)

// Parts are the names for Options.Only, in the order of their run.
func Parts() []string { return measure.Names(new(run).parts()) }

func (r *run) parts() []measure.Part {
	return []measure.Part{
		{Name: "serial", What: "pods through the API server, one after the other", Run: r.serial},
		{Name: "volumes", What: "pods with five volumes and pods with none", Run: r.volumes},
		{Name: "burst", What: "many pods at once through the API server", Run: r.bursts},
		{Name: "idle", What: "a member of the cluster with nothing to do", Run: r.idle},
	}
}

// run is the state of one run.
type run struct {
	measure.Options
	report  *measure.Report
	cluster *cluster
	// bare is made by the first part that needs it.
	bare *measure.Bare
}

// apiCalls is what a pod's way through the API server may take beside the bare
// calls: it is forgiven in the ratios that have a target.
const apiCalls = 20 * time.Millisecond

// How many times what the bare calls take it may take until pods are Ready, and
// until they are gone.
const (
	readyTimes = 1.1
	goneTimes  = 1.25
)

// allowed is how long a burst may take by these targets, in seconds.
func allowed(bare measure.Together, times float64) float64 {
	return times*bare.Total().Seconds() + apiCalls.Seconds()
}

// Run measures. It needs root, and testbed.Install before. Options.Burst is how
// many pods the first burst has; a second one has twice as many.
func Run(ctx context.Context, o measure.Options) (_ *measure.Report, err error) {
	r := &run{Options: o.WithDefaults()}
	if err := r.Check(r.parts()); err != nil {
		return nil, err
	}
	r.report = measure.NewReport(ctx)
	r.Progress("a control plane and a private containerd")
	if r.cluster, err = startCluster(ctx); err != nil {
		return nil, err
	}
	defer func() {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
		defer cancel()
		err = errors.Join(err, r.cluster.stop(undo))
	}()
	defer r.report.End() // whatever came of it
	return r.report, r.RunAll(ctx, r.parts())
}

// rivals are the agent, running, and the bare calls.
func (r *run) rivals(ctx context.Context) (*cluster, *measure.Bare, error) {
	if r.bare == nil {
		template, err := r.cluster.record(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("record the calls of a pod: %w", err)
		}
		if r.bare, err = measure.NewBare(r.cluster.bed(), template); err != nil {
			return nil, nil, err
		}
	}
	return r.cluster, r.bare, r.cluster.startAgent(ctx)
}

func (r *run) serial(ctx context.Context) error {
	c, bare, err := r.rivals(ctx)
	if err != nil {
		return err
	}
	frozen := func(ctx context.Context, i int) (start, stop time.Duration, err error) {
		err = c.withoutAgent(ctx, func() (err error) {
			start, stop, err = bare.Turn(ctx, i)
			return err
		})
		return start, stop, err
	}
	got, err := measure.TakeTurns(ctx, frozen, c.restedTurn, r.Pods)
	if err != nil {
		return err
	}
	for _, row := range []struct {
		what   string
		pairs  measure.Pairs
		target float64
	}{{"created to Ready", got.Start, readyTimes}, {"deleted to gone", got.Stop, goneTimes}} {
		r.report.Add(fmt.Sprintf("API server: %s, less %v, against bare calls", row.what, apiCalls),
			row.pairs.Ratio(apiCalls), "x", measure.AtMost(row.target), row.pairs.MadeOf())
	}
	return nil
}

// volumesCost is what five volumes may add to the start of a pod.
const volumesCost = 10 * time.Millisecond

// volumes compares pods with five volumes with pods with none, in turns.
func (r *run) volumes(ctx context.Context) error {
	c := r.cluster
	if err := errors.Join(c.startAgent(ctx), c.makeObjects(ctx)); err != nil {
		return err
	}
	turn := func(prefix string, kind func(name, node string) *corev1.Pod) measure.Turn {
		return func(ctx context.Context, i int) (start, stop time.Duration, err error) {
			if start, stop, err = c.turnAs(ctx, fmt.Sprintf("%s-%d", prefix, i), kind); err != nil {
				return 0, 0, err
			}
			return start, stop, measure.Pass(ctx, restFor)
		}
	}
	got, err := measure.TakeTurns(ctx, turn("none", podWithoutVolumes), turn("five", podWithVolumes), r.Pods)
	if err != nil {
		return err
	}
	r.report.Add("API server: five volumes, created to Ready, more than without", measure.Millis(more(got.Start)), "ms",
		measure.AtMost(measure.Millis(volumesCost)), measure.Note("median of %d differences; with %.0f ms, without %.0f ms; gone %.0f ms later",
			len(got.Start.Bare), measure.Millis(measure.Median(got.Start.Agent)), measure.Millis(measure.Median(got.Start.Bare)), measure.Millis(more(got.Stop))))
	return nil
}

// more is the median of how much longer the second of each pair took.
func more(p measure.Pairs) time.Duration {
	all := make([]time.Duration, len(p.Bare))
	for i := range p.Bare {
		all[i] = p.Agent[i] - p.Bare[i]
	}
	return measure.Median(all)
}

func (r *run) bursts(ctx context.Context) error {
	for _, pods := range []int{r.Burst, 2 * r.Burst} {
		if err := r.burst(ctx, pods); err != nil {
			return fmt.Errorf("burst of %d: %w", pods, err)
		}
	}
	return nil
}

func (r *run) burst(ctx context.Context, pods int) error {
	c, bare, err := r.rivals(ctx)
	if err != nil {
		return err
	}
	if err := c.endAgent(ctx); err != nil {
		return err
	}
	width := node.DefaultConfig().StartWidth
	bareStart, bareStop, err := bare.Burst(ctx, pods, width)
	if err != nil {
		return err
	}
	if err := c.startAgent(ctx); err != nil {
		return err
	}
	start, stop, cpu, err := c.burst(ctx, pods)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("API server, burst of %d: ", pods)
	r.report.Add(what+"all Ready", start.Total().Seconds(), "s", measure.AtMost(allowed(bareStart, readyTimes)),
		measure.Note("%.2f times the bare calls, %.1f s, %d at a time", start.Against(bareStart), bareStart.Total().Seconds(), width))
	r.report.Add(what+"median pod, of the total", start.Share(), "x", measure.AtMost(0.6), start.MadeOf())
	r.report.Add(what+"all gone", stop.Total().Seconds(), "s", measure.AtMost(allowed(bareStop, goneTimes)),
		measure.Note("%.2f times the bare calls, %.1f s; median %.1f s", stop.Against(bareStop), bareStop.Total().Seconds(), measure.Median(stop).Seconds()))
	r.report.Add(what+"CPU of the agent", cpu.Seconds(), "s", measure.Note("from the first create until all are gone"))
	return nil
}

// idle measures an agent that has just started, and then with more and more pods.
func (r *run) idle(ctx context.Context) error {
	c := r.cluster
	if err := errors.Join(c.endAgent(ctx), c.startAgent(ctx)); err != nil {
		return err
	}
	var names []string
	for _, pods := range []int{0, r.Burst, 2 * r.Burst} {
		for i := len(names); i < pods; i++ {
			names = append(names, fmt.Sprintf("idle-%d", i))
		}
		if _, err := c.create(ctx, names[len(names)-min(pods, r.Burst):]); err != nil {
			return err
		}
		got, err := measure.Measure(ctx, c.pid(), r.Window)
		if err != nil {
			return err
		}
		target := 0.0
		if pods == 2*r.Burst {
			target = 45
		}
		r.report.AddFootprint(fmt.Sprintf("member of a cluster with %d pods", pods), got, target, r.Window)
	}
	_, err := c.delete(ctx, names)
	return err
}
