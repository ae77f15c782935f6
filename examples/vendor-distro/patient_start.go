package main

import (
	"time"

	"nodekit.dev/node"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/wire"
)

// patientStart is ready after ten minutes even if a source never answers, so
// that an appliance without network still tidies up.
func patientStart() nodefx.Option {
	return nodefx.Configure(func(cfg *wire.Config) {
		cfg.Node.ReadyWhen = func(in node.ReadyInput) bool {
			return node.AllReported(in) || in.Waited > 10*time.Minute
		}
	})
}
