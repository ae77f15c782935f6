package grpccheck

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"nodekit.dev/probe"
)

// answerLimit is how much of an answer's message, and of its headers, is read,
// in bytes.
const answerLimit = 64 << 10

// Check asks once, over a connection of its own, which it tries to open until
// ctx ends: a server that only starts may come in time. Only SERVING is a
// Success; all else is a Failure, nothing Unknown. It ends when ctx does, and is
// safe for concurrent use.
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
		return failedCall(err, t)
	}
	if resp.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return failure("service unhealthy (responded with %q)", resp.GetStatus().String())
	}
	return probe.Outcome{Result: probe.Success, Output: "service healthy"}
}

func failedCall(err error, t Target) probe.Outcome {
	switch status.Code(err) {
	case codes.Unimplemented:
		return failure("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): %s", status.Convert(err).Message())
	case codes.DeadlineExceeded:
		return failure("timeout: health rpc did not complete within %v", t.Timeout)
	}
	return failure("error: health rpc probe failed: %v", err)
}

func failure(format string, args ...any) probe.Outcome {
	text := fmt.Sprintf(format, args...)
	return probe.Outcome{Result: probe.Failure, Output: text[:min(len(text), probe.OutputLimit)]}
}

// ready waits for the connection; grpc-go itself tries again, with longer and
// longer breaks.
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
	creds := insecure.NewCredentials()
	if t.TLS {
		creds = credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}) //nolint:gosec // pods sign their certificates themselves
	}
	if t.UserAgent == "" {
		t.UserAgent = probe.DefaultUserAgent
	}
	dial := probe.Resetting(t.DialContext)
	return []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithUserAgent(t.UserAgent),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return dial(ctx, "tcp", address) }),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		// A pod is not trusted with the agent's memory.
		grpc.WithMaxHeaderListSize(answerLimit),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(answerLimit)),
	}
}
