package cgroups_test

import (
	"fmt"
	"log/slog"

	"nodekit.dev/resources"
	"nodekit.dev/resources/cgroups"
)

// The systemd driver without systemd is refused when the manager is made, not at
// the first pod.
func ExampleNew() {
	cfg := cgroups.Default()
	cfg.PodPids = 1024
	if _, err := cgroups.New(cfg, nil, slog.New(slog.DiscardHandler)); err != nil {
		fmt.Println(err)
	}
	cfg.Names.Driver = resources.Systemd
	_, err := cgroups.New(cfg, nil, slog.New(slog.DiscardHandler))
	fmt.Println(err)
	// Output: cgroups: the cgroup driver systemd needs Slices, which are not given
}
