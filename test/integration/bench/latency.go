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

// pairs are the times that bare pods and pods of the agent took, in turns.
type pairs struct{ bare, agent []time.Duration }

// ratio is the median of the ratios of neighbours.
func (p pairs) ratio() float64 {
	ratios := make([]float64, len(p.bare))
	for i := range p.bare {
		ratios[i] = float64(p.agent[i]) / float64(p.bare[i])
	}
	return median(ratios)
}

func median[T ~int64 | ~float64](all []T) T {
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

// turns is what serial starts and stops took.
type turns struct{ start, stop pairs }

// serial starts and stops pods one after the other, bare and by the agent in
// turns; who comes first changes from turn to turn. The first turn is to warm
// up and does not count.
func serial(ctx context.Context, a *agent, b *bare, pods int) (turns, error) {
	var out turns
	for i := range pods + 1 {
		var bareStart, bareStop, agentStart, agentStop time.Duration
		bare := func() (err error) {
			bareStart, bareStop, err = bareTurn(ctx, b, i)
			return err
		}
		agent := func() (err error) {
			agentStart, agentStop, err = agentTurn(ctx, a, i)
			return err
		}
		order := []func() error{bare, agent}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, turn := range order {
			if err := turn(); err != nil {
				return out, fmt.Errorf("turn %d: %w", i, err)
			}
		}
		if i == 0 {
			continue
		}
		out.start.bare, out.start.agent = append(out.start.bare, bareStart), append(out.start.agent, agentStart)
		out.stop.bare, out.stop.agent = append(out.stop.bare, bareStop), append(out.stop.agent, agentStop)
	}
	return out, nil
}

func bareTurn(ctx context.Context, b *bare, i int) (start, stop time.Duration, err error) {
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

func agentTurn(ctx context.Context, a *agent, i int) (start, stop time.Duration, err error) {
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

// together is what one burst took: each pod's time from the common beginning.
type together []time.Duration

func (b together) total() time.Duration { return slices.Max(b) }

// share is the median pod's time in parts of the total.
func (b together) share() float64 { return float64(median(b)) / float64(b.total()) }

// bursts are the starts and stops of many pods at once.
type bursts struct{ bareStart, bareStop, agentStart, agentStop together }

func burst(ctx context.Context, a *agent, b *bare, pods, width int) (bursts, error) {
	var out bursts
	var barePods []*barePod
	for i := range pods {
		p, err := b.pod(ctx, fmt.Sprintf("bare-%d", i), uidOf(bareKind, i))
		if err != nil {
			return out, err
		}
		barePods = append(barePods, p)
	}
	var err error
	if out.bareStart, err = inWidth(ctx, barePods, width, (*barePod).start); err != nil {
		return out, fmt.Errorf("bare burst: %w", err)
	}
	if out.bareStop, err = inWidth(ctx, barePods, width, (*barePod).stop); err != nil {
		return out, fmt.Errorf("bare burst: %w", err)
	}
	var wanted []*corev1.Pod
	for i := range pods {
		wanted = append(wanted, newPod(fmt.Sprintf("burst-%d", i), uidOf("burst", i)))
	}
	if out.agentStart, err = a.start(ctx, wanted...); err != nil {
		return out, fmt.Errorf("burst: %w", err)
	}
	if out.agentStop, err = a.stopPods(ctx, wanted...); err != nil {
		return out, fmt.Errorf("burst: %w", err)
	}
	return out, nil
}

// inWidth does something to all pods, so many at a time, and gives each one's
// time from the common beginning.
func inWidth(ctx context.Context, pods []*barePod, width int, do func(*barePod, context.Context) error) (together, error) {
	took, errs := make(together, len(pods)), make([]error, len(pods))
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
