package podactor_test

import (
	"context"
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime/runtimetest"
)

// phases prints a pod's phases as they come.
type phases struct {
	last  lifecycle.Phase
	ready chan struct{}
}

func (p *phases) PodStatus(update podactor.StatusUpdate) {
	if update.Phase == p.last {
		return
	}
	p.last = update.Phase
	fmt.Println(update.Name, update.Phase)
	if update.Phase == lifecycle.Running {
		close(p.ready)
	}
}

// reporter takes what the strict runtime complains about.
type reporter struct{}

func (reporter) Helper()                        {}
func (reporter) Errorf(format string, a ...any) { log.Printf(format, a...) }

// One pod on a runtime in memory, from its start to its deletion.
func Example() {
	bench := actortest.New(reporter{}, runtimetest.Config{})
	sink := &phases{ready: make(chan struct{})}
	cfg := podactor.DefaultConfig()
	cfg.RootDir = "/var/lib/kubelet"
	want := lifecycle.Want{
		UID: "1", Namespace: "default", Name: "web", Static: true, Rules: lifecycle.DefaultRules(),
		Pod: actortest.Pod("1", "web", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyAlways }),
	}
	actor, err := podactor.New(cfg, podactor.Parts{
		Engine: bench, Watcher: bench, Puller: bench, Mounter: bench.Mounts, Specs: actortest.Specs{},
		Status: sink, Decide: lifecycle.Decide,
	}, want)
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan error)
	go func() { done <- actor.Run(context.Background()) }()
	<-sink.ready
	want.Stop = &lifecycle.Stop{Reason: lifecycle.StopDeleted, At: time.Now(), Grace: 30 * time.Second}
	actor.Want(want)
	fmt.Println("ended:", <-done)
	// Output:
	// web Preparing
	// web Running
	// web Stopping
	// web Cleaning
	// web Finished
	// ended: <nil>
}
