package wire

import (
	"context"
	"slices"
	"time"

	"nodekit.dev/node"
	"nodekit.dev/node/handlers"
	"nodekit.dev/probe"
	"nodekit.dev/probe/checks"
	"nodekit.dev/probe/execcheck"
)

// ProbeParts are what vendors add to the default prober.
type ProbeParts struct {
	// ProbeChecks make the checks of the kind that is their name, such as
	// "httpGet" or a kind of the vendor's own, in place of the stock one.
	ProbeChecks []node.Ordered[probe.Checker]
	// ProbeObservers are told of each check.
	ProbeObservers []ProbeObserver
}

// ProbeObserver is told of each check of a probe whose result counts: of what
// it found, and of what that makes of the container. It must not block.
type ProbeObserver interface{ ProbeChecked(probe.Checked) }

// ProbeConfig is what the default prober is made from: the stock checks, with
// the vendors' among them, and who is told. Execer nil: no command runs in a
// container, and checks that want one say so.
func ProbeConfig(cfg Config, execer handlers.Execer, p ProbeParts, events *ProbeEvents) (probe.Config, error) {
	own, err := node.InOrder("probe check", p.ProbeChecks)
	if err != nil {
		return probe.Config{}, err
	}
	out := cfg.Probe
	out.Logger = cfg.Log.With("part", "probe")
	stock := cfg.Checks
	if stock.Exec == nil && execer != nil {
		stock.Exec = probeExecer{execer}
	}
	out.Checks = checks.Default(stock)
	for kind, check := range cfg.Probe.Checks {
		out.Checks[kind] = check
	}
	for _, o := range own {
		out.Checks[probe.Kind(o.Name)] = o.Value.Check
	}
	out.Observers = append(slices.Clone(out.Observers), events.Observer())
	for _, o := range p.ProbeObservers {
		out.Observers = append(out.Observers, probe.Observer{Checked: o.ProbeChecked})
	}
	return out, nil
}

// probeExecer runs the commands of probes where those of handlers run.
type probeExecer struct{ handlers.Execer }

func (e probeExecer) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) (execcheck.Result, error) {
	res, err := e.Execer.ExecSync(ctx, id, cmd, timeout)
	return execcheck.Result(res), err
}
