// Package checks is the default set of checks: what each handler of a pod's
// probe means, for the packages that check.
package checks

import (
	"context"
	"fmt"
	"net"

	"nodekit.dev/probe"
	"nodekit.dev/probe/execcheck"
	"nodekit.dev/probe/grpccheck"
	"nodekit.dev/probe/httpcheck"
	"nodekit.dev/probe/tcpcheck"
)

// DefaultUserAgent is the stock kubelet's of v1.37.
const DefaultUserAgent = httpcheck.DefaultUserAgent

// Config are the settings of the set.
type Config struct {
	// UserAgent is sent over HTTP and gRPC; empty: DefaultUserAgent.
	UserAgent string
	// Exec runs commands; nil: no exec checks in the set.
	Exec execcheck.Execer
	// H2C follows an httpGet's protocol HTTP2, GRPCTLS a grpc's mode TLS (gates
	// H2CContainerProbe and GRPCContainerProbeTLS). Off: the fields are ignored.
	H2C, GRPCTLS bool
	// DialContext opens connections to pods, such as in a network namespace; nil
	// for a plain net.Dialer. It must end when its context does, and is called
	// concurrently.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
}

// Default is a check for each kind that pods can name.
func Default(cfg Config) map[probe.Kind]probe.Check {
	if cfg.UserAgent == "" {
		cfg.UserAgent = DefaultUserAgent
	}
	set := map[probe.Kind]probe.Check{
		probe.HTTPGet:   cfg.http(httpcheck.New(httpcheck.Config{UserAgent: cfg.UserAgent, DialContext: cfg.DialContext})),
		probe.TCPSocket: cfg.tcp,
		probe.GRPC:      cfg.grpc,
	}
	if cfg.Exec != nil {
		set[probe.Exec] = cfg.exec
	}
	return set
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
	if t.Handler.Exec == nil {
		return missing(probe.Exec)
	}
	return execcheck.Check(ctx, execcheck.Target{
		Exec: c.Exec, ContainerID: t.ContainerID, Command: t.Handler.Exec.Command, Timeout: t.Timeout,
	})
}

func missing(kind probe.Kind) probe.Outcome {
	return probe.Outcome{Err: fmt.Errorf("the handler has no %s", kind)}
}
