// Package systemd asks systemd over D-Bus for the slices of pods: what the
// cgroup driver of that name needs (cgroups.Slices).
//
//	slices := systemd.New(systemd.Default(), log)
//	manager, err := cgroups.New(cfg, slices, log)
//	go slices.Run(ctx) // closes the connection at the end
//
// Rules for callers:
//
//   - New does no I/O. The connection is made with the first call, kept, and
//     made anew after it broke: systemd is the one to restart, not the agent.
//   - The bus is the system's; as root, where that does not answer, systemd's
//     own socket.
//   - Slices are transient units: they do not outlive a reboot, and a reload of
//     systemd keeps them with their limits.
//   - CPU limits are systemd's whole percents of one CPU, rounded up.
package systemd
