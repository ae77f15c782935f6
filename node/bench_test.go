package node_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node"
	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/runtime/runtimetest"
)

// BenchmarkPodLife starts and deletes one pod among many that just run: its
// cost must not depend on how many those are.
func BenchmarkPodLife(b *testing.B) {
	for _, pods := range []int{10, 1000, 10000} {
		b.Run(fmt.Sprintf("among=%d", pods), func(b *testing.B) { benchmarkPodLife(b, pods) })
	}
}

func benchmarkPodLife(b *testing.B, pods int) {
	bench := actortest.New(b, runtimetest.Config{EventBuffer: 1 << 17})
	file := newSource("file")
	life := newLives()
	cfg := node.DefaultConfig()
	cfg.RootDir = b.TempDir()
	n, err := node.New(cfg, node.Parts{
		Engine: bench, Watcher: bench, Puller: bench, Mounter: bench.Mounts, Specs: actortest.Specs{},
		Sources:  []node.Ordered[node.Source]{{Name: "file", Value: file}},
		Observer: node.Observer{PodStatus: life.status, PodRemoved: life.removed},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- n.Run(ctx) }()
	var all []*corev1.Pod
	for i := range pods {
		all = append(all, static(fmt.Sprint("crowd-", i), fmt.Sprint("crowd-", i)))
	}
	file.ch <- node.SourceUpdate{Pods: all}
	for range pods {
		<-life.up
	}
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	before := cpuTime(b)
	lives := 0
	for b.Loop() {
		lives++
		pod := static(fmt.Sprint("one-", lives), "one")
		file.ch <- node.SourceUpdate{Partial: true, Pods: []*corev1.Pod{pod}}
		<-life.up
		file.ch <- node.SourceUpdate{Partial: true, Removed: []types.UID{pod.UID}}
		<-life.gone
	}
	b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(lives), "cpu-µs/op")
	b.ReportMetric(float64(memory.HeapAlloc)/float64(pods)/1024, "KiB-heap/pod")
	cancel()
	<-done
}

// lives says when a pod came up and went.
type lives struct {
	up, gone chan struct{}
	seen     sync.Map
}

func newLives() *lives {
	return &lives{up: make(chan struct{}, 100_000), gone: make(chan struct{}, 100_000)}
}

func (l *lives) status(view node.PodView) {
	if view.Status.Phase != corev1.PodRunning {
		return
	}
	if _, twice := l.seen.LoadOrStore(view.UID, true); !twice {
		l.up <- struct{}{}
	}
}

func (l *lives) removed(node.PodView) { l.gone <- struct{}{} }

// cpuTime is what the process used so far; unlike wall time it does not depend
// on what else the machine does.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
