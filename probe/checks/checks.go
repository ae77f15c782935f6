// Package checks is the default set of checks: what each handler of a pod's
// probe means, for the packages that check.
package checks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"nodekit.dev/probe"
	"nodekit.dev/probe/execcheck"
	"nodekit.dev/probe/grpccheck"
	"nodekit.dev/probe/httpcheck"
	"nodekit.dev/probe/tcpcheck"
)

// DefaultUserAgent is the stock kubelet's of v1.37.
const DefaultUserAgent = "kube-probe/1.37"

// Config are the settings of the set.
type Config struct {
	// UserAgent is sent over HTTP and gRPC; empty: DefaultUserAgent.
	UserAgent string
	// Exec runs commands; nil: no exec checks in the set.
	Exec execcheck.Execer
	// H2C follows an httpGet's protocol HTTP2, GRPCTLS a grpc's mode TLS (gates
	// H2CContainerProbe and GRPCContainerProbeTLS). Off: the fields are ignored.
	H2C, GRPCTLS bool
	// Dial opens connections to pods, such as in a network namespace; nil for a
	// plain net.Dialer. It must end when its context does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Default is a check for each kind that pods can name.
func Default(cfg Config) map[probe.Kind]probe.Check {
	if cfg.UserAgent == "" {
		cfg.UserAgent = DefaultUserAgent
	}
	set := map[probe.Kind]probe.Check{
		probe.HTTPGet: cfg.http, probe.TCPSocket: cfg.tcp, probe.GRPC: cfg.grpc,
	}
	if cfg.Exec != nil {
		set[probe.Exec] = cfg.exec
	}
	return set
}

func (c Config) http(ctx context.Context, t probe.Target) probe.Outcome {
	get := t.Handler.HTTPGet
	if get == nil {
		return missing(probe.HTTPGet)
	}
	address, err := address(get.Host, get.Port, t)
	if err != nil {
		return probe.Outcome{Err: err}
	}
	own := http.Header{}
	for _, h := range get.HTTPHeaders {
		own.Add(h.Name, h.Value)
	}
	return httpcheck.Check(ctx, httpcheck.Target{
		URL:    targetURL(get, address),
		Header: httpcheck.Header(own, c.UserAgent),
		H2C:    c.H2C && get.Protocol != nil && *get.Protocol == corev1.HTTPProtocolHTTP2,
		Dial:   c.Dial,
	})
}

func (c Config) tcp(ctx context.Context, t probe.Target) probe.Outcome {
	if t.Handler.TCPSocket == nil {
		return missing(probe.TCPSocket)
	}
	address, err := address(t.Handler.TCPSocket.Host, t.Handler.TCPSocket.Port, t)
	if err != nil {
		return probe.Outcome{Err: err}
	}
	return tcpcheck.Check(ctx, tcpcheck.Target{Address: address, Dial: c.Dial})
}

func (c Config) grpc(ctx context.Context, t probe.Target) probe.Outcome {
	ask := t.Handler.GRPC
	if ask == nil {
		return missing(probe.GRPC)
	}
	target := grpccheck.Target{
		Address:   net.JoinHostPort(t.Host, strconv.Itoa(int(ask.Port))),
		UserAgent: c.UserAgent, Timeout: t.Timeout, Dial: c.Dial,
		TLS: c.GRPCTLS && ask.Mode != nil && *ask.Mode == corev1.GRPCProbeModeTLS,
	}
	if ask.Service != nil {
		target.Service = *ask.Service
	}
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

func address(host string, port intstr.IntOrString, t probe.Target) (string, error) {
	if host == "" {
		host = t.Host
	}
	if host == "" {
		return "", errors.New("the pod has no address yet and the handler names no host")
	}
	number := port.IntValue()
	if port.Type == intstr.String && number == 0 {
		for _, p := range t.Ports {
			if p.Name == port.StrVal {
				number = int(p.ContainerPort)
			}
		}
	}
	if number <= 0 || number > 65535 {
		return "", fmt.Errorf("port %q: neither a port number nor the name of a port of container %s", port.String(), t.Container)
	}
	return net.JoinHostPort(host, strconv.Itoa(number)), nil
}

func targetURL(get *corev1.HTTPGetAction, address string) *url.URL {
	target := &url.URL{Path: get.Path}
	if parsed, err := url.Parse(get.Path); err == nil { // else it is a path with odd characters
		// What else the text may hold, a host above all, is not the path's business.
		target = &url.URL{Path: parsed.Path, RawPath: parsed.RawPath, RawQuery: parsed.RawQuery}
	}
	if !strings.HasPrefix(target.Path, "/") {
		target = &url.URL{Path: "/" + target.Path, RawQuery: target.RawQuery}
	}
	target.Scheme, target.Host = "http", address
	if strings.EqualFold(string(get.Scheme), string(corev1.URISchemeHTTPS)) {
		target.Scheme = "https"
	}
	return target
}
