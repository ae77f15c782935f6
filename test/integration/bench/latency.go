package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Pairs are the times that bare pods and pods of the agent took, in turns.
type Pairs struct{ Bare, Agent []time.Duration }

// Ratio is the median of the ratios of neighbours, after so much of each of
// the agent's times was forgiven.
func (p Pairs) Ratio(forgiven time.Duration) float64 {
	ratios := make([]float64, len(p.Bare))
	for i := range p.Bare {
		ratios[i] = float64(p.Agent[i]-forgiven) / float64(p.Bare[i])
	}
	return Median(ratios)
}

// MadeOf is a row's note on what the ratio is made of.
func (p Pairs) MadeOf() func(*Row) {
	return Note("median of %d: agent %.0f ms, bare %.0f ms", len(p.Bare), Millis(Median(p.Agent)), Millis(Median(p.Bare)))
}

// Median is the middle of the values, or half-way between the two; 0 of none.
func Median[T ~int64 | ~float64](all []T) T {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}

// Turn starts a pod and stops it. The number is its own among those of its kind.
type Turn func(ctx context.Context, i int) (start, stop time.Duration, err error)

// Turns is what serial starts and stops took.
type Turns struct{ Start, Stop Pairs }

// TakeTurns starts and stops pods one after the other, bare and by the agent in
// turns; who comes first changes from turn to turn. The first turn is to warm
// up and does not count.
func TakeTurns(ctx context.Context, bare, agent Turn, pods int) (Turns, error) {
	var out Turns
	for i := range pods + 1 {
		var starts, stops [2]time.Duration
		turns, order := [2]Turn{bare, agent}, []int{0, 1}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, who := range order {
			var err error
			if starts[who], stops[who], err = turns[who](ctx, i); err != nil {
				return out, fmt.Errorf("turn %d: %w", i, err)
			}
		}
		if i == 0 {
			continue
		}
		out.Start.Bare, out.Start.Agent = append(out.Start.Bare, starts[0]), append(out.Start.Agent, starts[1])
		out.Stop.Bare, out.Stop.Agent = append(out.Stop.Bare, stops[0]), append(out.Stop.Agent, stops[1])
	}
	return out, nil
}

// Turn is a Turn by the bare calls.
func (b *Bare) Turn(ctx context.Context, i int) (start, stop time.Duration, err error) {
	p, err := b.pod(ctx, fmt.Sprintf("bare-%d", i), uidOf(bareKind, i))
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := p.start(ctx); err != nil {
		return 0, 0, fmt.Errorf("bare start: %w", err)
	}
	start = time.Since(began)
	began = time.Now()
	if err := p.stop(ctx); err != nil {
		return 0, 0, fmt.Errorf("bare stop: %w", err)
	}
	return start, time.Since(began), nil
}

// turn is a Turn by the agent.
func (a *agent) turn(ctx context.Context, i int) (start, stop time.Duration, err error) {
	pod := newPod(fmt.Sprintf("serial-%d", i), uidOf("serial", i))
	started, err := a.start(ctx, pod)
	if err != nil {
		return 0, 0, err
	}
	stopped, err := a.stopPods(ctx, pod)
	if err != nil {
		return 0, 0, err
	}
	return started[0], stopped[0], nil
}

// uidOf is a UID that no other pod has, of the usual form.
func uidOf(kind string, i int) string {
	sum := uint64(14695981039346656037)
	for _, b := range []byte(kind) {
		sum = (sum ^ uint64(b)) * 1099511628211
	}
	return fmt.Sprintf("%08x-%04x-4000-8000-%012x", uint32(sum), uint16(sum>>32), i)
}

// kindOf is what the UIDs of one kind of pods have in common.
func kindOf(uid string) string { return uid[:strings.LastIndexByte(uid, '-')+1] }

// Together is what one burst took: each pod's time from the common beginning.
type Together []time.Duration

// Total is when the last one was there.
func (b Together) Total() time.Duration { return slices.Max(b) }

// Share is the median pod's time in parts of the total.
func (b Together) Share() float64 { return float64(Median(b)) / float64(b.Total()) }

// Against is the total in parts of another one's.
func (b Together) Against(other Together) float64 { return float64(b.Total()) / float64(other.Total()) }

// MadeOf is a row's note on the median pod and the total.
func (b Together) MadeOf() func(*Row) {
	return Note("median %.1f s of %.1f s", Median(b).Seconds(), b.Total().Seconds())
}

// Burst starts many pods by the bare calls, so many at a time, and then stops
// them in the same way.
func (b *Bare) Burst(ctx context.Context, pods, width int) (start, stop Together, err error) {
	var all []*barePod
	for i := range pods {
		p, err := b.pod(ctx, fmt.Sprintf("bare-%d", i), uidOf(bareKind, i))
		if err != nil {
			return nil, nil, err
		}
		all = append(all, p)
	}
	if start, err = inWidth(ctx, all, width, (*barePod).start); err != nil {
		return nil, nil, fmt.Errorf("bare burst: %w", err)
	}
	if stop, err = inWidth(ctx, all, width, (*barePod).stop); err != nil {
		return nil, nil, fmt.Errorf("bare burst: %w", err)
	}
	return start, stop, nil
}

// burst starts many pods at once, and then stops them.
func (a *agent) burst(ctx context.Context, pods int) (start, stop Together, err error) {
	var wanted []*corev1.Pod
	for i := range pods {
		wanted = append(wanted, newPod(fmt.Sprintf("burst-%d", i), uidOf("burst", i)))
	}
	if start, err = a.start(ctx, wanted...); err != nil {
		return nil, nil, fmt.Errorf("burst: %w", err)
	}
	if stop, err = a.stopPods(ctx, wanted...); err != nil {
		return nil, nil, fmt.Errorf("burst: %w", err)
	}
	return start, stop, nil
}

// inWidth does something to all pods, so many at a time, and gives each one's
// time from the common beginning.
func inWidth(ctx context.Context, pods []*barePod, width int, do func(*barePod, context.Context) error) (Together, error) {
	took, errs := make(Together, len(pods)), make([]error, len(pods))
	next := make(chan int)
	var workers sync.WaitGroup
	began := time.Now()
	for range width {
		workers.Go(func() {
			for i := range next {
				errs[i] = do(pods[i], ctx)
				took[i] = time.Since(began)
			}
		})
	}
	for i := range pods {
		next <- i
	}
	close(next)
	workers.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return took, nil
}

// throughFolder is how long pods take from the moment their manifest is in the
// folder, one after the other.
func throughFolder(ctx context.Context, a *agent, pods int) (start, stop []time.Duration, err error) {
	for i := range pods {
		pod := newPod(fmt.Sprintf("folder-%d", i), "")
		file, err := stageManifest(a.manifests, pod)
		if err != nil {
			return nil, nil, err
		}
		w := a.watches.watch(pod.Name)
		began := time.Now()
		if err := os.Rename(file.staged, file.path); err != nil {
			return nil, nil, err
		}
		ready, err := wait(ctx, "ready", pod.Name, w.ready)
		if err != nil {
			return nil, nil, err
		}
		start = append(start, ready.Sub(began))
		began = time.Now()
		if err := os.Remove(file.path); err != nil {
			return nil, nil, err
		}
		gone, err := wait(ctx, "gone", pod.Name, w.gone)
		if err != nil {
			return nil, nil, err
		}
		stop = append(stop, gone.Sub(began))
	}
	return start, stop, nil
}

// manifest is a file that is written, but not in its place yet.
type manifest struct{ staged, path string }

// stageManifest writes a pod's manifest beside the folder where it belongs.
func stageManifest(folder string, pod *corev1.Pod) (manifest, error) {
	m := manifest{staged: filepath.Join(filepath.Dir(folder), pod.Name+".staged"), path: filepath.Join(folder, pod.Name+".yaml")}
	text, err := yaml.Marshal(pod)
	if err != nil {
		return m, err
	}
	return m, os.WriteFile(m.staged, text, 0o644)
}
