// Package grpccheck asks a server of the gRPC health protocol
// (grpc.health.v1) for a service's health.
package grpccheck

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"nodekit.dev/probe"
)

// DialFunc opens a connection, such as net.Dialer.DialContext or one that
// enters a network namespace first. It must end when its context does.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Target is what to ask.
type Target struct {
	// Address is "host:port", Service the name to ask for, often empty.
	Address, Service string
	// UserAgent goes before grpc-go's own.
	UserAgent string
	// TLS speaks TLS; the certificate is not checked.
	TLS bool
	// Timeout is for messages only: ctx is the bound.
	Timeout time.Duration
	// Dial opens the connection; nil for a plain net.Dialer.
	Dial DialFunc
}

// Check asks once, over a connection of its own. Only SERVING is a Success;
// nothing is Unknown. It ends when ctx does.
func Check(ctx context.Context, t Target) probe.Outcome {
	conn, err := grpc.NewClient("passthrough:///"+t.Address, options(t)...)
	if err != nil {
		return failure("error: failed to connect service at %q: %v", t.Address, err)
	}
	defer func() { _ = conn.Close() }() // the answer is here
	if err := ready(ctx, conn); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return failure("timeout: failed to connect service %q within %v: %v", t.Address, t.Timeout, err)
		}
		return failure("error: failed to connect service at %q: %v", t.Address, err)
	}
	resp, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: t.Service})
	if err != nil {
		return failedCall(err, t.Timeout)
	}
	if resp.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return failure("service unhealthy (responded with %q)", resp.GetStatus().String())
	}
	return probe.Outcome{Result: probe.Success, Output: "service healthy"}
}

func failedCall(err error, timeout time.Duration) probe.Outcome {
	switch status.Code(err) {
	case codes.Unimplemented:
		return failure("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): %s", status.Convert(err).Message())
	case codes.DeadlineExceeded:
		return failure("timeout: health rpc did not complete within %v", timeout)
	}
	return failure("error: health rpc probe failed: %v", err)
}

func failure(format string, args ...any) probe.Outcome {
	return probe.Outcome{Result: probe.Failure, Output: fmt.Sprintf(format, args...)}
}

// ready waits for the connection, trying again until ctx ends: a server that
// is only starting may come in time.
func ready(ctx context.Context, conn *grpc.ClientConn) error {
	for {
		conn.Connect()
		state := conn.GetState()
		if state == connectivity.Ready {
			return nil
		}
		if !conn.WaitForStateChange(ctx, state) {
			return ctx.Err()
		}
	}
}

func options(t Target) []grpc.DialOption {
	dial := t.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	creds := insecure.NewCredentials()
	if t.TLS {
		creds = credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}) //nolint:gosec // pods sign their certificates themselves
	}
	return []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithUserAgent(t.UserAgent),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := dial(ctx, "tcp", address)
			if err != nil {
				return nil, err
			}
			// A reset at the end leaves no socket in TIME_WAIT; the answer is read by then.
			if tcp, ok := conn.(interface{ SetLinger(seconds int) error }); ok {
				_ = tcp.SetLinger(0) // at worst one more TIME_WAIT
			}
			return conn, nil
		}),
	}
}
