package grpccheck_test

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"nodekit.dev/probe/grpccheck"
)

// A service that is known, and serves.
func Example() {
	ctx := context.Background()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(l) }()
	defer server.Stop()

	fmt.Println(grpccheck.Check(ctx, grpccheck.Target{Address: l.Addr().String()}).Output)
	// Output: service healthy
}
