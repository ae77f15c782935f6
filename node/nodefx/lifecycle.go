package nodefx

import (
	"context"

	"go.uber.org/fx"

	"nodekit.dev/internal/fxrun"
)

// Lifecycle ties what a constructor makes to the agent's start and stop. Ask
// for it as a parameter; it is for constructors only, and not for later use.
// What is added first starts first and stops last. (An fx.Lifecycle works too:
// its hooks then go by the name of the constructor.)
type Lifecycle struct {
	lc     fx.Lifecycle
	runner *fxrun.Runner
}

func newLifecycle(lc fx.Lifecycle, r *fxrun.Runner) Lifecycle { return Lifecycle{lc: lc, runner: r} }

// Run makes a part live from start to stop. Run must return when its context
// ends; when it ends earlier, or panics, [Agent.Done] says so.
func (l Lifecycle) Run(name string, run func(ctx context.Context) error) {
	l.runner.Run(l.lc, name, run)
}

// Hold calls open at the start, where it is not nil, and shut at the stop if
// open succeeded. An error of open is one of Start.
func (l Lifecycle) Hold(name string, open, shut func(ctx context.Context) error) {
	l.runner.Hold(l.lc, name, open, shut)
}
