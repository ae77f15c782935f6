// Package grpccheck asks a server of the gRPC health protocol
// (grpc.health.v1) for a service's health, as the grpc handler of a pod's probe
// means it (core/v1 GRPCAction, KEP-2727; over TLS KEP-4939).
//
//	outcome := grpccheck.Check(ctx, grpccheck.Target{Address: "10.0.0.7:8080"})
package grpccheck
