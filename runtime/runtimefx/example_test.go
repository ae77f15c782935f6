package runtimefx_test

import (
	"fmt"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"nodekit.dev/internal/fxrun"
	"nodekit.dev/node"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime/runtimefx"
)

// What is asked for is built, with what it stands on, and nothing else.
func Example() {
	runner := fxrun.New(time.Second)
	var watcher node.Watcher
	app := fx.New(
		fx.WithLogger(func() fxevent.Logger { return fxevent.NopLogger }),
		fx.Supply(wire.Default(), runner),
		runtimefx.Module(),
		fx.Populate(&watcher),
	)
	fmt.Println(app.Err(), runner.Names(), watcher != nil)
	// Output: <nil> [runtime-client runtime-observe] true
}
