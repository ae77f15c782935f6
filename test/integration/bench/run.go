package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"nodekit.dev/node"
	crowd "nodekit.dev/test/bench"
	"nodekit.dev/test/integration/testbed"
)

// run is the state of one run.
type run struct {
	Options
	report *Report
	bed    *testbed.Bed
	// recorded is made by the first part that needs it.
	recorded *recording
	agent    *agent
}

// Parts are the names for Options.Only, in the order of their run.
func Parts() []string { return Names(new(run).parts()) }

func (r *run) parts() []Part {
	return []Part{
		{"size", "size of the programs", r.size},
		{"calls", "calls to the runtime per pod", r.calls},
		{"serial", "pods one after the other", r.serial},
		{"burst", "many pods at once", r.burst},
		{"folder", "pods through the folder of manifests", r.folder},
		{"idle", "an agent with nothing to do", r.idle},
		{"probes", "thousands of probes", r.probes},
		{"exec", "probes by commands in containers", r.exec},
		{"crowd", "events among thousands of pods, in memory", r.crowd},
	}
}

// Run measures. It needs root, and testbed.Install before.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	r := &run{Options: o.WithDefaults()}
	if err := r.Check(r.parts()); err != nil {
		return nil, err
	}
	r.report = NewReport(ctx)
	r.Progress("a private containerd")
	if r.bed, err = testbed.Start(ctx, testbed.Options{}); err != nil {
		return nil, err
	}
	defer func() {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
		defer cancel()
		err = errors.Join(err, r.stopAgent(ctx), r.bed.Stop(undo))
	}()
	defer r.report.End() // whatever came of it
	return r.report, r.RunAll(ctx, r.parts())
}

func (r *run) size(ctx context.Context) error {
	for _, p := range []struct {
		pkg    string
		target float64
	}{{"./examples/minimal-node", 25}, {"./cmd/kubelet", 30}} {
		size, err := sizeOf(ctx, r.bed.Dir, p.pkg)
		if err != nil {
			return err
		}
		r.report.Add("stripped size of "+strings.TrimPrefix(p.pkg, "./"), float64(size)/1e6, "MB", AtMost(p.target))
	}
	return nil
}

// record makes the recording once.
func (r *run) record(ctx context.Context) (recording, error) {
	if r.recorded == nil {
		rec, err := recordPod(ctx, r.bed)
		if err != nil {
			return rec, err
		}
		r.recorded = &rec
	}
	return *r.recorded, nil
}

func (r *run) calls(ctx context.Context) error {
	rec, err := r.record(ctx)
	if err != nil {
		return err
	}
	r.report.Add("runtime calls per start", float64(rec.start.total()), "calls", Note("%s", rec.start))
	r.report.Add("runtime calls per stop", float64(rec.stop.total()), "calls", Note("%s", rec.stop))
	return nil
}

// rivals gives the agent, started when it is needed first, and the bare calls.
func (r *run) rivals(ctx context.Context) (*agent, *Bare, error) {
	rec, err := r.record(ctx)
	if err == nil && r.agent == nil {
		r.agent, err = startAgent(ctx, r.bed, r.bed.Socket)
	}
	if err != nil {
		return nil, nil, err
	}
	b, err := NewBare(r.bed, rec.template)
	return r.agent, b, err
}

func (r *run) stopAgent(ctx context.Context) error {
	if r.agent == nil {
		return nil
	}
	err := r.agent.stop(ctx)
	r.agent = nil
	return err
}

func (r *run) serial(ctx context.Context) error {
	a, b, err := r.rivals(ctx)
	if err != nil {
		return err
	}
	got, err := TakeTurns(ctx, b.Turn, a.turn, r.Pods)
	if err != nil {
		return err
	}
	r.report.Add("start to Ready, against bare calls", got.Start.Ratio(0), "x", AtMost(1.1), got.Start.MadeOf())
	r.report.Add("stop to gone, against bare calls", got.Stop.Ratio(0), "x", AtMost(1.25), got.Stop.MadeOf())
	return nil
}

func (r *run) burst(ctx context.Context) error {
	a, b, err := r.rivals(ctx)
	if err != nil {
		return err
	}
	width := node.DefaultConfig().StartWidth
	bareStart, bareStop, err := b.Burst(ctx, r.Burst, width)
	if err != nil {
		return err
	}
	start, stop, err := a.burst(ctx, r.Burst)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("burst of %d", r.Burst)
	r.report.Add(what+": median pod, of the total", start.Share(), "x", AtMost(0.6), start.MadeOf())
	r.report.Add(what+": total, against bare calls", start.Against(bareStart), "x",
		Note("bare: median %.1f s of %.1f s, %d at a time", Median(bareStart).Seconds(), bareStart.Total().Seconds(), width))
	r.report.Add(what+": all gone, against bare calls", stop.Against(bareStop), "x",
		Note("agent %.1f s, bare %.1f s", stop.Total().Seconds(), bareStop.Total().Seconds()))
	return nil
}

func (r *run) folder(ctx context.Context) error {
	a, _, err := r.rivals(ctx)
	if err != nil {
		return err
	}
	start, stop, err := throughFolder(ctx, a, max(1, r.Pods/4))
	if err != nil {
		return err
	}
	waits := "of this, the folder is watched for 100 ms of quiet"
	r.report.Add("manifest in the folder to Ready", Millis(Median(start)), "ms", Note("%s", waits))
	r.report.Add("manifest gone to pod gone", Millis(Median(stop)), "ms", Note("%s", waits))
	return nil
}

func (r *run) idle(ctx context.Context) error {
	if err := r.stopAgent(ctx); err != nil { // two agents on one runtime end each other's pods
		return err
	}
	got, err := idleKubelet(ctx, r.bed, r.Burst, r.Window)
	if err != nil {
		return err
	}
	r.report.AddFootprint("cmd/kubelet without pods", got.Empty, 0, r.Window)
	r.report.AddFootprint(fmt.Sprintf("cmd/kubelet with %d pods", r.Burst), got.Full, 30, r.Window)
	r.report.Add(fmt.Sprintf("cmd/kubelet: %d manifests to all running", r.Burst), got.AllRunning.Seconds(), "s")
	r.report.Add(fmt.Sprintf("cmd/kubelet: %d manifests gone to all gone", r.Burst), got.AllGone.Seconds(), "s")
	return nil
}

// crowd compares what an event costs among few and among many pods.
func (r *run) crowd(ctx context.Context) error {
	costs, err := crowd.Measure(ctx, crowd.Options{})
	if err != nil {
		return err
	}
	few, many := costs[0], costs[len(costs)-1]
	ratio := func(what string, of func(crowd.Cost) float64, unit string) {
		r.report.Add(fmt.Sprintf("%s, %d against %d pods", what, many.Pods, few.Pods), of(many)/of(few), "x", AtMost(1.2),
			Note("%.1f and %.1f %s", of(many), of(few), unit))
	}
	for _, kind := range []struct {
		name string
		of   func(crowd.Cost) crowd.Event
	}{
		{"event without change", func(c crowd.Cost) crowd.Event { return c.Hint }},
		{"restart of a container", func(c crowd.Cost) crowd.Event { return c.Restart }},
	} {
		ratio(kind.name+": calls", func(c crowd.Cost) float64 { return kind.of(c).Calls }, "calls")
		ratio(kind.name+": allocations", func(c crowd.Cost) float64 { return kind.of(c).Allocs }, "allocations")
		ratio(kind.name+": CPU", func(c crowd.Cost) float64 { return float64(kind.of(c).CPU.Nanoseconds()) / 1e3 }, "µs")
	}
	r.report.Add(fmt.Sprintf("memory per pod among %d", many.Pods), many.HeapPerPod/1024, "KiB", Note("the runtime in memory included"))
	return nil
}
