package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"nodekit.dev/node"
	crowd "nodekit.dev/test/bench"
	"nodekit.dev/test/integration/testbed"
)

// Options say how much is measured.
type Options struct {
	// Pods are started and stopped one after the other; default 20.
	Pods int
	// Burst is how many are started at once, and run while memory and CPU are
	// measured; default 50.
	Burst int
	// Window is how long an idle agent is watched; default 20 s.
	Window time.Duration
	// Only leaves out the parts that it does not name; nil: all. See Parts.
	Only []string
	// Progress is told what is being done; nil: nobody.
	Progress func(string)
}

// Parts are the names for Options.Only, in the order of their run.
func Parts() []string {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

// part is one piece of the run.
type part struct {
	name, what string
	run        func(*run, context.Context) error
}

func parts() []part {
	return []part{
		{"size", "size of the programs", (*run).size},
		{"calls", "calls to the runtime per pod", (*run).calls},
		{"serial", "pods one after the other", (*run).serial},
		{"burst", "many pods at once", (*run).burst},
		{"folder", "pods through the folder of manifests", (*run).folder},
		{"idle", "an agent with nothing to do", (*run).idle},
		{"crowd", "events among thousands of pods, in memory", (*run).crowd},
	}
}

// run is the state of one run.
type run struct {
	Options
	report Report
	bed    *testbed.Bed
	// recorded is made by the first part that needs it.
	recorded *recording
	agent    *agent
}

// Run measures. It needs root, and testbed.Install before.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	for _, name := range o.Only {
		if !contains(Parts(), name) {
			return nil, fmt.Errorf("no part of the bench is called %q; there are %s", name, strings.Join(Parts(), ", "))
		}
	}
	if o.Pods == 0 {
		o.Pods = 20
	}
	if o.Burst == 0 {
		o.Burst = 50
	}
	if o.Window == 0 {
		o.Window = 20 * time.Second
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	r := &run{Options: o, report: Report{Date: time.Now().UTC(), Commit: commit(ctx), Machine: machine()}}
	r.report.Load[0] = load()
	o.Progress("a private containerd")
	if r.bed, err = testbed.Start(ctx, testbed.Options{}); err != nil {
		return nil, err
	}
	defer func() {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
		defer cancel()
		err = errors.Join(err, r.stopAgent(ctx), r.bed.Stop(undo))
	}()
	// The load is that at the end of what was measured, whatever came of it.
	defer func() { r.report.Load[1] = load() }()
	for _, p := range parts() {
		if len(o.Only) > 0 && !contains(o.Only, p.name) {
			continue
		}
		o.Progress(p.what)
		if err := p.run(r, ctx); err != nil {
			return &r.report, fmt.Errorf("%s: %w", p.what, err)
		}
	}
	return &r.report, nil
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
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
		r.report.add("stripped size of "+strings.TrimPrefix(p.pkg, "./"), float64(size)/1e6, "MB", atMost(p.target))
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
	r.report.add("runtime calls per start", float64(rec.start.total()), "calls", note("%s", rec.start))
	r.report.add("runtime calls per stop", float64(rec.stop.total()), "calls", note("%s", rec.stop))
	return nil
}

// rivals gives the agent, started when it is needed first, and the bare calls.
func (r *run) rivals(ctx context.Context) (*agent, *bare, error) {
	rec, err := r.record(ctx)
	if err == nil && r.agent == nil {
		r.agent, err = startAgent(ctx, r.bed, r.bed.Socket)
	}
	if err != nil {
		return nil, nil, err
	}
	b, err := newBare(r.bed, rec.template)
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
	got, err := serial(ctx, a, b, r.Pods)
	if err != nil {
		return err
	}
	of := func(p pairs) func(*Row) {
		return note("median of %d: agent %.0f ms, bare %.0f ms", len(p.bare), ms(median(p.agent)), ms(median(p.bare)))
	}
	r.report.add("start to Ready, against bare calls", got.start.ratio(), "x", atMost(1.1), of(got.start))
	r.report.add("stop to gone, against bare calls", got.stop.ratio(), "x", atMost(1.25), of(got.stop))
	return nil
}

func (r *run) burst(ctx context.Context) error {
	a, b, err := r.rivals(ctx)
	if err != nil {
		return err
	}
	got, err := burst(ctx, a, b, r.Burst, node.DefaultConfig().StartWidth)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("burst of %d", r.Burst)
	r.report.add(what+": median pod, of the total", got.agentStart.share(), "x", atMost(0.6),
		note("median %.1f s of %.1f s", median(got.agentStart).Seconds(), got.agentStart.total().Seconds()))
	r.report.add(what+": total, against bare calls", float64(got.agentStart.total())/float64(got.bareStart.total()), "x",
		note("bare: median %.1f s of %.1f s, %d at a time", median(got.bareStart).Seconds(), got.bareStart.total().Seconds(), node.DefaultConfig().StartWidth))
	r.report.add(what+": all gone, against bare calls", float64(got.agentStop.total())/float64(got.bareStop.total()), "x",
		note("agent %.1f s, bare %.1f s", got.agentStop.total().Seconds(), got.bareStop.total().Seconds()))
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
	r.report.add("manifest in the folder to Ready", ms(median(start)), "ms", note("%s", waits))
	r.report.add("manifest gone to pod gone", ms(median(stop)), "ms", note("%s", waits))
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
	for _, f := range []struct {
		pods int
		footprint
		rss float64
	}{{0, got.Empty, 0}, {r.Burst, got.Full, 30}} {
		what := fmt.Sprintf("cmd/kubelet with %d pods: ", f.pods)
		r.report.add(what+"memory", mib(f.RSS.Total), "MiB", atMost(f.rss),
			note("resident; %.1f made, %.1f of the program's file", mib(f.RSS.Anon), mib(f.RSS.File)))
		r.report.add(what+"CPU", f.MilliCPU, "millicores", note("idle, over %v", r.Window))
	}
	r.report.add(fmt.Sprintf("cmd/kubelet: %d manifests to all running", r.Burst), got.AllRunning.Seconds(), "s")
	r.report.add(fmt.Sprintf("cmd/kubelet: %d manifests gone to all gone", r.Burst), got.AllGone.Seconds(), "s")
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
		r.report.add(fmt.Sprintf("%s, %d against %d pods", what, many.Pods, few.Pods), of(many)/of(few), "x", atMost(1.2),
			note("%.1f and %.1f %s", of(many), of(few), unit))
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
	r.report.add(fmt.Sprintf("memory per pod among %d", many.Pods), many.HeapPerPod/1024, "KiB", note("the runtime in memory included"))
	return nil
}

// commit is what was measured; a "+" says that the tree had changes.
func commit(ctx context.Context) string {
	hash, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	text := strings.TrimSpace(string(hash))
	if changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "-uno").Output(); err != nil || len(changes) > 0 {
		text += "+"
	}
	return text
}

func machine() string {
	model := "unknown CPU"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, found := strings.Cut(string(text), "model name"); found {
			line, _, _ := strings.Cut(rest, "\n")
			model = strings.TrimLeft(line, "\t :")
		}
	}
	return fmt.Sprintf("%d x %s", runtime.NumCPU(), model)
}

func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	avg, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return avg
}
