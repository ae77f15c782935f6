package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
)

// Options say what is measured. Zero fields get defaults.
type Options struct {
	// Sizes of the crowds, which live side by side; default 1,000 and 10,000.
	Sizes []int
	// Rounds in which the crowds take turns; default 15. The least counts: what
	// else the machine and the process do (traces of quiet pods are packed some
	// seconds later) only adds to it.
	Rounds int
	// Events per round: so many restarts, and ten times as many hints, which are
	// cheap; default 200.
	Events int
}

// Cost is what events cost in a crowd of one size.
type Cost struct {
	Pods int
	// Hint is a container event after which nothing is to be done; Restart is a
	// container that failed and was started again.
	Hint, Restart Event
	// HeapPerPod is the memory of one pod in bytes, with the runtime's own.
	HeapPerPod float64
}

// Event is what one event cost: calls of the runtime, allocations, and CPU
// time of the whole process, collection of garbage included.
type Event struct {
	Calls  float64
	Allocs float64
	CPU    time.Duration
}

// Measure measures. Rounds of the crowds take turns, so that whatever else the
// machine does, it does to all of them.
func Measure(ctx context.Context, o Options) (_ []Cost, err error) {
	o = o.withDefaults()
	dir, err := os.MkdirTemp("", "nodekit-crowd-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	costs, crowds := make([]Cost, len(o.Sizes)), make([]*Crowd, len(o.Sizes))
	for i, size := range o.Sizes {
		before := heap()
		if crowds[i], err = Start(ctx, dir, size); err != nil {
			return nil, fmt.Errorf("%d pods: %w", size, err)
		}
		defer func() { err = errors.Join(err, crowds[i].Stop()) }()
		costs[i] = Cost{Pods: size, HeapPerPod: (heap() - before) / float64(size)}
		if err := warmUp(ctx, crowds[i]); err != nil {
			return nil, err
		}
	}
	if err := settle(ctx); err != nil {
		return nil, err
	}
	hints, restarts := make([][]Event, len(crowds)), make([][]Event, len(crowds))
	for round := range o.Rounds {
		for turn := range crowds {
			i := (round + turn) % len(crowds) // nobody is always first
			c := crowds[i]
			hint, err := batch(ctx, c, round, cheap*o.Events, (*Crowd).Hint)
			if err != nil {
				return nil, err
			}
			restart, err := batch(ctx, c, round, o.Events, (*Crowd).Restart)
			if err != nil {
				return nil, err
			}
			hints[i], restarts[i] = append(hints[i], hint), append(restarts[i], restart)
		}
	}
	for i := range costs {
		costs[i].Hint, costs[i].Restart = least(hints[i]), least(restarts[i])
	}
	return costs, nil
}

func (o Options) withDefaults() Options {
	if len(o.Sizes) == 0 {
		o.Sizes = []int{1000, 10_000}
	}
	if o.Rounds == 0 {
		o.Rounds = 15
	}
	if o.Events == 0 {
		o.Events = 200
	}
	return o
}

// warmUp restarts each pod that events are about so often that it has old
// containers to remove: the first restarts of a pod are cheaper.
func warmUp(ctx context.Context, c *Crowd) error {
	for i := range 3 * c.busy() {
		if err := c.Restart(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// settle returns when the process has nothing left to do: the traces of pods
// that have just started are packed in the background some seconds later, and
// that work of thousands of pods is not what an event costs.
func settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for quiet, last := 0, cpuTime(); quiet < quietSeconds; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the crowds do not come to rest: %w", ctx.Err())
		}
		now := cpuTime()
		quiet++
		if now-last > restCPU {
			quiet = 0
		}
		last = now
	}
	return nil
}

const (
	// quietSeconds is longer than what an actor waits before it packs a trace.
	quietSeconds = 3
	// restCPU is what a process at rest may use in a second.
	restCPU = 20 * time.Millisecond
)

// batch measures events at pods all over the crowd.
func batch(ctx context.Context, c *Crowd, round, events int, event func(*Crowd, context.Context, int) error) (Event, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	calls, cpu := c.world.calls(), cpuTime()
	for i := range events {
		if err := event(c, ctx, round*events+i); err != nil {
			return Event{}, err
		}
	}
	cpu = cpuTime() - cpu
	runtime.ReadMemStats(&after)
	n := float64(events)
	return Event{
		Calls:  float64(c.world.calls()-calls) / n,
		Allocs: float64(after.Mallocs-before.Mallocs) / n,
		CPU:    time.Duration(float64(cpu) / n),
	}, nil
}

// cheap is how many times as many hints there are as restarts.
const cheap = 10

// least is the least of each figure over all rounds.
func least(all []Event) Event {
	out := all[0]
	for _, e := range all[1:] {
		out.Calls, out.Allocs, out.CPU = min(out.Calls, e.Calls), min(out.Allocs, e.Allocs), min(out.CPU, e.CPU)
	}
	return out
}

// cpuTime is what the process has used; unlike the clock it does not count
// what others do on the machine.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0 // can not fail with these arguments
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// heap is the memory in use after a collection of garbage, in bytes.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
