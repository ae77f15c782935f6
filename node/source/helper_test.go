package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
)

// manifest is a pod's manifest with one container of that image.
func manifest(name, image string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata:\n  name: %s\nspec:\n  containers:\n  - name: main\n    image: %s\n", name, image)
}

// told collects the problems of a source.
type told struct {
	mu       sync.Mutex
	problems []Problem
	mended   []Problem
}

func (p *told) observer() Observer {
	return Observer{
		Problem: func(x Problem) { p.mu.Lock(); defer p.mu.Unlock(); p.problems = append(p.problems, x) },
		Mended:  func(x Problem) { p.mu.Lock(); defer p.mu.Unlock(); p.mended = append(p.mended, x) },
	}
}

func (p *told) has(reason Reason, words string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.problems, func(x Problem) bool {
		return x.Reason == reason && strings.Contains(x.Message, words)
	})
}

func (p *told) counts() (problems, mended int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.problems), len(p.mended)
}

// running is a source that runs, as the node sees it.
type running struct {
	t       *testing.T
	updates chan node.SourceUpdate
	stop    func()
}

func run(t *testing.T, s node.Source) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{t: t, updates: make(chan node.SourceUpdate)}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, r.updates) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

// next waits for an update and returns its pods by name.
func (r *running) next() map[string]*corev1.Pod {
	r.t.Helper()
	return byName(r.nextUpdate())
}

func byName(u node.SourceUpdate) map[string]*corev1.Pod {
	pods := map[string]*corev1.Pod{}
	for _, pod := range u.Pods {
		pods[pod.Name] = pod
	}
	return pods
}

func (r *running) nextUpdate() node.SourceUpdate {
	r.t.Helper()
	timer := time.NewTimer(20 * time.Second)
	defer timer.Stop()
	select {
	case u := <-r.updates:
		return u
	case <-timer.C:
		r.t.Fatal("no update")
		return node.SourceUpdate{}
	}
}

// quiet fails when the source sends while fn becomes true.
func (r *running) quiet(what string, fn func() bool) {
	r.t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !fn() {
		select {
		case u := <-r.updates:
			r.t.Fatalf("update with %d pods while waiting for %s", len(u.Pods), what)
		case <-deadline.C:
			r.t.Fatal("never happened: " + what)
		case <-tick.C:
		}
	}
}
