package nodefx

import (
	"go.uber.org/fx"

	"nodekit.dev/internal/fxrun"
	"nodekit.dev/node"
	"nodekit.dev/node/handlers"
	"nodekit.dev/node/wire"
	"nodekit.dev/probe"
)

// AddProbeCheck makes the checks of one kind: a probe.Checker, such as a
// probe.Check, or a constructor that returns one. Of a kind that pods can name
// ("httpGet", "tcpSocket", "grpc", "exec") it takes the place of the stock one.
func AddProbeCheck(kind probe.Kind, checker any) Option {
	return add[probe.Checker]("AddProbeCheck", "probechecks", string(kind), checker, nil)
}

// AddProbeObserver adds who is told of each check of a probe: a
// wire.ProbeObserver, or a constructor that returns one.
func AddProbeObserver(observer any) Option {
	return addPlain[wire.ProbeObserver]("AddProbeObserver", "probeobservers", observer)
}

// probeParts are the groups of the default prober.
type probeParts struct {
	fx.In

	Checks    []node.Ordered[probe.Checker] `group:"probechecks"`
	Observers []wire.ProbeObserver          `group:"probeobservers"`
}

func newProbeEvents() *wire.ProbeEvents { return &wire.ProbeEvents{} }

func probeConfig(cfg wire.Config, execer handlers.Execer, p probeParts, events *wire.ProbeEvents) (probe.Config, error) {
	return wire.ProbeConfig(cfg, execer, wire.ProbeParts{ProbeChecks: p.Checks, ProbeObservers: p.Observers}, events)
}

func prober(lc fx.Lifecycle, r *fxrun.Runner, cfg wire.Config, manager *probe.Manager) node.Prober {
	p := wire.NewProber(cfg, manager)
	r.Run(lc, "probe-results", p.Run)
	return p
}
