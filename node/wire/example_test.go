package wire_test

import (
	"context"
	"fmt"
	"log"
	"os"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/source"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime/runtimetest"
)

// reporter takes what the strict runtime complains about.
type reporter struct{}

func (reporter) Helper()                        {}
func (reporter) Errorf(format string, a ...any) { log.Printf(format, a...) }

// ended tells how a pod ended.
type ended chan corev1.PodPhase

func (e ended) PodStatus(u node.StatusUpdate) {
	if u.Status.Phase == corev1.PodSucceeded {
		e <- u.Status.Phase
	}
}

// An agent wired by hand runs one pod to its end, here on a runtime in memory.
func Example() {
	bench := actortest.New(reporter{}, runtimetest.Config{})
	bench.Script("app", runtimetest.Behaviour{RunFor: runtimetest.AtOnce})
	root, err := os.MkdirTemp("", "agent")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)

	cfg := wire.Default()
	cfg.NodeName, cfg.NodeIPs, cfg.RootDir = "edge-1", []string{"192.0.2.1"}, root
	pods, err := source.NewChannel("go", source.Config{NodeName: cfg.NodeName})
	if err != nil {
		fmt.Println(err)
		return
	}
	once := actortest.Pod("1", "once", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever })
	if err := pods.Set([]*corev1.Pod{once}); err != nil {
		fmt.Println(err)
		return
	}
	sink := make(ended, 10)
	agent, err := wire.New(cfg, wire.WithSource(pods), wire.WithParts(func(p *wire.Parts) {
		p.Engine, p.Watcher, p.Puller = bench, bench, bench // left out: the CRI at cfg.CRI.Endpoint
		p.StatusSinks = append(p.StatusSinks, sink)
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- agent.Run(ctx) }()
	fmt.Println(<-sink)
	stop()
	fmt.Println("stopped:", <-done)
	// Output:
	// Succeeded
	// stopped: <nil>
}
