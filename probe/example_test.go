package probe_test

import (
	"context"
	"fmt"
	"time"

	"nodekit.dev/probe"
)

// A check of one's own, for what a program knows of itself.
func ExampleNew() {
	calls := 0
	m, err := probe.New(probe.Config{Checks: map[probe.Kind]probe.Check{
		"warm": func(context.Context, probe.Target) probe.Outcome {
			if calls++; calls < 3 {
				return probe.Outcome{Result: probe.Failure, Output: "still cold"}
			}
			return probe.Outcome{Result: probe.Success, Output: "warm"}
		},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	spec := probe.Spec{Kind: "warm", Period: time.Millisecond, Timeout: time.Second, SuccessThreshold: 1, FailureThreshold: 3}
	if _, err := m.Watch(probe.Container{Name: "oven", Readiness: &spec}); err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go m.Run(ctx)
	for state := range m.States() {
		if *state.Ready {
			fmt.Println(state.Container, "is ready:", state.Message)
			cancel()
		}
	}
	// Output: oven is ready: warm
}
