package grpccheck

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"nodekit.dev/probe"
)

// Target is what to ask.
type Target struct {
	// Address is "host:port", Service the name to ask for, often empty.
	Address, Service string
	// TLS speaks TLS. The certificate is not checked.
	TLS bool
	// UserAgent goes before grpc-go's own; empty: probe.DefaultUserAgent.
	UserAgent string
	// Timeout is for messages only: ctx is the bound.
	Timeout time.Duration
	// DialContext opens the connection; nil for a plain net.Dialer.
	DialContext probe.DialFunc
}

// TargetOf is what a pod's grpc handler asks for. With tls its mode is followed
// (GRPCAction.mode, gate GRPCContainerProbeTLS), else ignored. It fails for a
// handler without grpc, for a pod without an IP, for a port that is none and for
// an unknown mode.
func TargetOf(t probe.Target, tls bool) (Target, error) {
	ask := t.Handler.GRPC
	if ask == nil {
		return Target{}, errors.New("the handler has no grpc")
	}
	address, err := t.Address("", intstr.FromInt32(ask.Port))
	if err != nil {
		return Target{}, err
	}
	target := Target{Address: address, Timeout: t.Timeout}
	if ask.Service != nil {
		target.Service = *ask.Service
	}
	if !tls || ask.Mode == nil {
		return target, nil
	}
	switch *ask.Mode {
	case corev1.GRPCProbeModeTLS:
		target.TLS = true
	case corev1.GRPCProbeModePlaintext:
	default:
		return Target{}, fmt.Errorf("the mode %q is neither TLS nor Plaintext", *ask.Mode)
	}
	return target, nil
}
