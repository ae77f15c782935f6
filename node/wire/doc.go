// Package wire ties the parts of an agent together by hand, without fx:
//
//	cfg := wire.Default()
//	cfg.NodeName, cfg.NodeIPs = "edge-1", []string{"10.0.0.5"}
//	cfg.Sources = ...
//	agent, err := wire.New(cfg)
//	err = agent.Run(ctx)
//
// It also holds the adapters between packages that may not know each other
// ([Engine], [Watcher], [Puller], [Mounter], [Handlers]): the fx modules call
// the same ones. Whoever replaces a part gives it with an [Option].
package wire
