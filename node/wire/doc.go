// Package wire ties the parts of an agent together by hand, without fx:
//
//	cfg := wire.Default()
//	cfg.NodeName, cfg.NodeIPs = "edge-1", []string{"10.0.0.5"}
//	agent, err := wire.New(cfg, wire.WithSource(pods))
//	err = agent.Run(ctx)
//
// It also holds the adapters between packages that may not know each other
// ([Engine], [Watcher], [Puller], [Mounter], [Execer]): the fx modules call
// the same ones. Whoever replaces a part gives it with an [Option].
//
// Rules for callers:
//
//   - Two agents in one process need two root directories, two directories for
//     pod logs, and two runtimes (or two containerd namespaces): New does not
//     check, but Run refuses a root directory that another agent holds.
//   - New reads facts about the machine from /proc and /sys ([Config.Complete])
//     and does no other I/O.
//   - An agent stands alone until cluster.Join of node/cluster is among its
//     options; this package links nothing that talks to an API server.
//   - An engine that is not the CRI says in Config.Spec.Features what it can do.
package wire
