package resourcesfx_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/fxrun"
	"nodekit.dev/node"
	"nodekit.dev/node/wire"
	"nodekit.dev/resources/resourcesfx"
)

// In a library the agent makes no cgroups unless Host.PodCgroups says so, and
// every pod is admitted.
func Example() {
	var (
		cgroups   node.Cgroups
		allocator node.Allocator
	)
	app := fx.New(
		fx.WithLogger(func() fxevent.Logger { return fxevent.NopLogger }),
		fx.Supply(wire.Default(), slog.New(slog.DiscardHandler), fxrun.New(time.Second)),
		resourcesfx.Module(),
		fx.Populate(&cgroups, &allocator),
	)
	if app.Err() != nil {
		fmt.Println(app.Err())
		return
	}
	pod := &corev1.Pod{}
	admission, err := allocator.Admit(context.Background(), node.AdmitRequest{Pod: pod})
	fmt.Println(admission.Verdict, err, cgroups.Ensure(context.Background(), pod))
	// Output: Admit <nil> <nil>
}
