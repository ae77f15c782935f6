package systemd_test

import (
	"context"
	"fmt"
	"log/slog"

	"nodekit.dev/resources"
	"nodekit.dev/resources/cgroups"
	"nodekit.dev/resources/cgroups/systemd"
)

// A manager of pod cgroups on a machine whose init is systemd: nothing is asked
// of it before the first pod.
func ExampleNew() {
	slices := systemd.New(systemd.Default(), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _ = slices.Run(ctx) }()

	cfg := cgroups.Default()
	cfg.Names.Driver = resources.Systemd
	_, err := cgroups.New(cfg, slices, slog.New(slog.DiscardHandler))
	fmt.Println(err)
	// Output: <nil>
}
