package node_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime/runtimetest"
)

// fixed is a source of pods that are always wanted.
type fixed []*corev1.Pod

func (f fixed) Name() string { return "fixed" }

func (f fixed) Run(ctx context.Context, updates chan<- node.SourceUpdate) error {
	updates <- node.SourceUpdate{Pods: f}
	<-ctx.Done()
	return ctx.Err()
}

// greeter is a vendor's hook that acts at one moment only.
type greeter struct{ node.NoHook }

func (greeter) Started(_ context.Context, pod *corev1.Pod, container, _ string) error {
	fmt.Printf("%s of pod %s started\n", container, pod.Name)
	return nil
}

// running closes a channel when a pod runs.
type running struct {
	ch   chan struct{}
	seen bool
}

func (r *running) PodStatus(update podactor.StatusUpdate) {
	if update.Status.Phase == corev1.PodRunning && !r.seen {
		r.seen = true
		close(r.ch)
	}
}

// reporter takes what the strict runtime complains about.
type reporter struct{}

func (reporter) Helper()                        {}
func (reporter) Errorf(format string, a ...any) { log.Printf(format, a...) }

// A node with one pod, a vendor's hook and a runtime in memory. When the node
// stops, the pod runs on.
func Example() {
	bench := actortest.New(reporter{}, runtimetest.Config{})
	up := &running{ch: make(chan struct{})}
	cfg := node.DefaultConfig()
	cfg.RootDir = os.TempDir()
	n, err := node.New(cfg, node.Parts{
		Engine: bench, Watcher: bench, Puller: bench, Mounter: bench.Mounts, Specs: actortest.Specs{},
		Sources:     []node.Ordered[node.Source]{{Name: "fixed", Value: fixed{actortest.Pod("1", "web")}}},
		Hooks:       []node.Ordered[node.Hook]{{Name: "greeter", Value: greeter{}}},
		StatusSinks: []node.StatusSink{up},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- n.Run(ctx) }()
	<-n.Ready()
	<-up.ch
	cancel()
	fmt.Println("stopped:", errors.Is(<-done, context.Canceled))
	pods, _ := bench.ListPods(context.Background())
	fmt.Println("still", pods[0].Containers[0].State)
	// Output:
	// app of pod web started
	// stopped: true
	// still running
}
