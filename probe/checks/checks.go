package checks

import (
	"context"
	"errors"

	"nodekit.dev/probe"
	"nodekit.dev/probe/execcheck"
	"nodekit.dev/probe/grpccheck"
	"nodekit.dev/probe/httpcheck"
	"nodekit.dev/probe/tcpcheck"
)

// Config are the settings of the set. Its zero value is a set without exec
// checks, with the gates of alpha features off, as they are by default.
type Config struct {
	// UserAgent is sent over HTTP and gRPC; empty: probe.DefaultUserAgent.
	UserAgent string
	// Exec runs commands; nil: exec checks are Unknown.
	Exec execcheck.Execer
	// H2C follows an httpGet's protocol HTTP2, GRPCTLS a grpc's mode TLS (gates
	// H2CContainerProbe and GRPCContainerProbeTLS). Off: the fields are ignored,
	// as an API server with the gate off drops them.
	H2C, GRPCTLS bool
	// DialContext opens connections to pods; nil for a plain net.Dialer.
	DialContext probe.DialFunc
}

// Default is a check for each kind that pods can name. A handler that can not be
// followed, for a port that is none or a pod without an IP, is Unknown.
func Default(cfg Config) map[probe.Kind]probe.Check {
	return map[probe.Kind]probe.Check{
		probe.HTTPGet:   cfg.http(httpcheck.New(httpcheck.Config{UserAgent: cfg.UserAgent, DialContext: cfg.DialContext})),
		probe.TCPSocket: cfg.tcp,
		probe.GRPC:      cfg.grpc,
		probe.Exec:      cfg.exec,
	}
}

func (c Config) http(checker *httpcheck.Checker) probe.Check {
	return func(ctx context.Context, t probe.Target) probe.Outcome {
		target, err := httpcheck.TargetOf(t, c.H2C)
		if err != nil {
			return probe.Outcome{Err: err}
		}
		return checker.Check(ctx, target)
	}
}

func (c Config) tcp(ctx context.Context, t probe.Target) probe.Outcome {
	target, err := tcpcheck.TargetOf(t)
	if err != nil {
		return probe.Outcome{Err: err}
	}
	target.DialContext = c.DialContext
	return tcpcheck.Check(ctx, target)
}

func (c Config) grpc(ctx context.Context, t probe.Target) probe.Outcome {
	target, err := grpccheck.TargetOf(t, c.GRPCTLS)
	if err != nil {
		return probe.Outcome{Err: err}
	}
	target.UserAgent, target.DialContext = c.UserAgent, c.DialContext
	return grpccheck.Check(ctx, target)
}

func (c Config) exec(ctx context.Context, t probe.Target) probe.Outcome {
	if c.Exec == nil {
		return probe.Outcome{Err: errors.New("this agent runs no commands in containers")}
	}
	target, err := execcheck.TargetOf(t)
	if err != nil {
		return probe.Outcome{Err: err}
	}
	return execcheck.Check(ctx, target, c.Exec)
}
