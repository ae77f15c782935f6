package nodefx_test

import (
	"context"
	"fmt"
	"log"
	"os"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime/runtimetest"
)

// reporter takes what the strict runtime complains about.
type reporter struct{}

func (reporter) Helper()                        {}
func (reporter) Errorf(format string, a ...any) { log.Printf(format, a...) }

// audit is a vendor's hook that acts at one moment only.
type audit struct {
	node.NoHook
	started chan string
}

func (a audit) Started(_ context.Context, pod *corev1.Pod, container, _ string) error {
	a.started <- container + " of " + pod.Name
	return nil
}

// An agent on a runtime in memory, with a pod from Go and a vendor's hook.
func Example() {
	bench := actortest.New(reporter{}, runtimetest.Config{})
	root, err := os.MkdirTemp("", "agent")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	cfg := wire.Default()
	cfg.NodeName, cfg.NodeIPs, cfg.RootDir = "edge-1", []string{"192.0.2.1"}, root

	hook := audit{started: make(chan string)}
	agent, err := nodefx.New(
		nodefx.Config(cfg),
		nodefx.Replace[node.Engine](func() *actortest.Bench { return bench }),
		nodefx.Replace[node.Watcher](func() *actortest.Bench { return bench }),
		nodefx.Replace[node.Puller](func() *actortest.Bench { return bench }),
		nodefx.AddHook("audit", hook),
		nodefx.AddSource("go", pods{"go", []*corev1.Pod{actortest.Pod("1", "web")}}),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	if err := agent.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	<-agent.Ready()
	fmt.Println("started", <-hook.started)
	fmt.Println("stopped", agent.Stop(ctx))
	// Output:
	// started app of web
	// stopped <nil>
}

// Two replacements of one seam are an error that names both.
func ExampleReplace() {
	_, err := nodefx.New(
		nodefx.Replace[node.Allocator](wire.AdmitAll),
		nodefx.Replace[node.Allocator](wire.AdmitAll),
	)
	fmt.Println(err)
	// Output: two replacements of podactor.Allocator: wire.AdmitAll and wire.AdmitAll; keep one, or turn one into a Wrap
}
