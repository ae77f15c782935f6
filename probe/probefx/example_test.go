package probefx_test

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"nodekit.dev/internal/fxrun"
	"nodekit.dev/probe"
	"nodekit.dev/probe/probefx"
)

// The manager of the graph runs from start to stop.
func Example() {
	cfg := probe.Config{Checks: map[probe.Kind]probe.Check{
		"always": func(context.Context, probe.Target) probe.Outcome { return probe.Outcome{Result: probe.Success} },
	}}
	runner := fxrun.New(time.Second)
	var m *probe.Manager
	app := fx.New(
		fx.WithLogger(func() fxevent.Logger { return fxevent.NopLogger }),
		fx.Supply(cfg, runner),
		probefx.Module(),
		fx.Populate(&m),
	)
	ctx := context.Background()
	fmt.Println(app.Err(), runner.Names(), app.Start(ctx))
	spec := probe.Spec{Kind: "always", Period: time.Second, Timeout: time.Second, SuccessThreshold: 1, FailureThreshold: 1}
	_, err := m.Watch(probe.Container{Name: "web", Readiness: &spec})
	fmt.Println(err)
	for state := range m.States() {
		if *state.Ready {
			fmt.Println(state.Container, "is ready")
			break
		}
	}
	fmt.Println(app.Stop(ctx))
	// Output:
	// <nil> [probes] <nil>
	// <nil>
	// web is ready
	// <nil>
}
