package node

import (
	"cmp"
	"context"
	"slices"
	"time"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime"
)

// dispatcher is the state of one Run. One goroutine owns it; what others read
// too is in Node.table, under Node.mu.
type dispatcher struct {
	*Node
	inputs *tasks.Group // sources and readers: end with the context of Run
	pods   *tasks.Group // actors: outlive it while the node drains

	updates chan SourceUpdate
	ended   chan *record
	scans   chan scan
	checks  chan check
	moved   chan struct{} // some pod's phase rose; holds one token

	started  time.Time
	wants    map[string]wants // by source
	owner    map[string]string
	reported map[string]bool
	unclear  map[string]bool // sources that may want more than they name
	isReady  bool
	checking map[string]bool // UIDs that are being looked up
	scanning bool
	network  bool
	rules    lifecycle.Rules
	orders   int64
	told     bool // that sources are missing
}

func newDispatcher(ctx context.Context, n *Node) *dispatcher {
	d := &dispatcher{
		Node:     n,
		inputs:   tasks.New(ctx),
		pods:     tasks.New(context.WithoutCancel(ctx)),
		updates:  make(chan SourceUpdate),
		ended:    make(chan *record),
		scans:    make(chan scan),
		checks:   make(chan check),
		moved:    make(chan struct{}, 1),
		started:  time.Now(),
		wants:    map[string]wants{},
		owner:    map[string]string{},
		reported: map[string]bool{},
		unclear:  map[string]bool{},
		checking: map[string]bool{},
		network:  n.parts.Watcher.Status().NetworkReady,
	}
	for _, source := range n.groups.sources {
		d.reported[source.Name] = false
		d.wants[source.Name] = wants{}
	}
	return d
}

func (d *dispatcher) run(ctx context.Context) error {
	err := d.readRuntime(ctx)
	if err == nil {
		d.rules = d.cfg.Rules
		d.learn(ctx)
		d.startSources()
		d.dispatch(ctx)
		err = ctx.Err()
	}
	d.inputs.Stop()
	d.pods.Stop()
	for _, group := range []*tasks.Group{d.inputs, d.pods} {
		if werr := group.Wait(); werr != nil { // a bug: parts' errors do not come this way
			d.log.Error("a task of the node failed", "err", werr)
		}
	}
	return err
}

// dispatch handles one event after the other until ctx ends, and until the
// pods are down where that was asked for.
func (d *dispatcher) dispatch(ctx context.Context) {
	health := time.NewTicker(d.cfg.HealthPeriod)
	defer health.Stop()
	hints := d.parts.Watcher.Hints()
	results := d.probeResults()
	stop, drainOver := ctx.Done(), (<-chan time.Time)(nil)
	d.checkReady(ctx)
	for {
		select {
		case <-stop:
			if !d.cfg.DrainOnStop {
				return
			}
			stop = nil
			timer := time.NewTimer(d.cfg.DrainTimeout)
			defer timer.Stop()
			drainOver = timer.C
			d.drain()
		case <-drainOver:
			d.log.Warn("pods still run after the drain", "limit", d.cfg.DrainTimeout, "pods", d.undrained())
			return
		case <-d.moved:
		case rec := <-d.ended:
			d.podEnded(rec)
		case update := <-d.updates:
			d.sourceUpdate(update)
			d.checkReady(ctx)
		case hint, open := <-hints:
			if !open {
				hints = nil
				continue
			}
			d.hint(hint)
		case result, open := <-results:
			if !open {
				results = nil
				continue
			}
			d.Probe(result.UID, result.Container, result.Probe)
		case result := <-d.scans:
			d.scanned(result)
		case result := <-d.checks:
			d.checked(result)
		case <-health.C:
			d.learn(ctx)
			d.checkHealth()
			d.checkReady(ctx)
		}
		if stop == nil && d.undrained() == 0 {
			return
		}
	}
}

// probeResults is nil without a prober, and then never read.
func (d *dispatcher) probeResults() <-chan podactor.ProbeResult {
	if d.parts.Prober == nil {
		return nil
	}
	return d.parts.Prober.Results()
}

// hint wakes the pod that the runtime has news of.
func (d *dispatcher) hint(hint runtime.Hint) {
	d.checkHealth()
	if hint.UID == "" {
		d.eachActor(func(_ *record, actor *podactor.Actor) { actor.Poke() })
		d.startScan()
		return
	}
	d.mu.Lock()
	rec := d.table.holder(hint.UID)
	known := rec != nil
	if known && rec.actor != nil {
		rec.actor.Hint(hint.At)
	}
	d.mu.Unlock()
	if !known {
		d.startCheck(hint.UID)
	}
}

// learn asks for the facts of the rules that are not known yet or may change,
// and passes them on to all pods: the runtime may be down, and the machine
// without a network, when the agent starts.
func (d *dispatcher) learn(ctx context.Context) {
	rules := d.rules
	if rules.RuntimeName == "" {
		rules.RuntimeName = d.parts.Watcher.Status().Name
	}
	if d.cfg.HostIPs != nil {
		contain(d.log, "HostIPs", func() {
			if now := d.cfg.HostIPs(ctx); len(now) > 0 {
				rules.HostIPs = slices.Clone(now)
			}
		})
	}
	if rules.RuntimeName == d.rules.RuntimeName && slices.Equal(rules.HostIPs, d.rules.HostIPs) {
		return
	}
	d.rules = rules
	d.log.Info("learned about the node", "runtime", rules.RuntimeName, "hostIPs", rules.HostIPs)
	d.eachActor(func(rec *record, _ *podactor.Actor) {
		d.mu.Lock()
		defer d.mu.Unlock()
		want := rec.want
		want.Rules = rules
		d.rewish(rec, want)
	})
}

// checkHealth passes on whether the network is ready, when that changed.
func (d *dispatcher) checkHealth() {
	ready := d.parts.Watcher.Status().NetworkReady
	if ready == d.network {
		return
	}
	d.network = ready
	d.log.Info("the runtime's network changed", "ready", ready)
	d.eachActor(func(_ *record, actor *podactor.Actor) { actor.NetworkReady(ready) })
}

// checkReady declares the node ready once enough is known of what is wanted.
func (d *dispatcher) checkReady(ctx context.Context) {
	if d.isReady || ctx.Err() != nil {
		return
	}
	waited := time.Since(d.started)
	if !d.cfg.ReadyWhen(ReadyInput{Reported: d.reported, Waited: waited}) {
		if !d.told && waited > 30*time.Second {
			d.told = true
			d.log.Warn("sources have not delivered; pods that nobody names are left alone until then",
				"sources", missingSources(d.reported))
		}
		return
	}
	d.isReady = true
	d.log.Info("node ready", "after", waited)
	close(d.ready)
	if d.cfg.OnReady != nil {
		contain(d.log, "OnReady", d.cfg.OnReady)
	}
	d.startScan()
}

// drain asks every pod to stop; dead containers stay, as after a shutdown.
func (d *dispatcher) drain() {
	d.inputs.Stop()
	now := time.Now()
	d.log.Info("stopping all pods", "limit", d.cfg.DrainTimeout)
	d.eachActor(func(rec *record, _ *podactor.Actor) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.rewish(rec, withStop(rec.want, lifecycle.Stop{
			Reason: lifecycle.StopShutdown, StatusReason: "Terminated",
			Message: "Pod was terminated in response to imminent node shutdown.",
			At:      now, Grace: min(graceOf(rec.want.Pod, d.rules), d.cfg.drainGrace()),
		}))
	})
}

// undrained counts the pods whose containers may still run.
func (d *dispatcher) undrained() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	count := 0
	for rec := range d.table.all {
		if rec.actor != nil && rec.view.Load().Phase < lifecycle.Cleaning {
			count++
		}
	}
	return count
}

// eachActor calls fn for every pod; only for what concerns all of them.
func (d *dispatcher) eachActor(fn func(*record, *podactor.Actor)) {
	type pair struct {
		rec   *record
		actor *podactor.Actor
	}
	d.mu.Lock()
	pairs := make([]pair, 0, len(d.table.all))
	for rec := range d.table.all {
		if rec.actor != nil {
			pairs = append(pairs, pair{rec, rec.actor})
		}
	}
	d.mu.Unlock()
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Compare(a.rec.order, b.rec.order) })
	for _, p := range pairs {
		fn(p.rec, p.actor)
	}
}
