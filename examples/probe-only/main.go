// Command probe-only watches the endpoints that are its arguments, such as
// http://10.0.0.7:8080/healthz or tcp://10.0.0.7:5432, with package probe alone,
// and prints what changes.
package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"nodekit.dev/probe"
	"nodekit.dev/probe/checks"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, time.Second, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, period time.Duration, endpoints []string, out io.Writer) error {
	m, err := probe.New(probe.Config{Checks: checks.Default(checks.Config{})})
	if err != nil {
		return err
	}
	for _, endpoint := range endpoints {
		spec := probe.Spec{Handler: handler(endpoint), Period: period, Timeout: time.Second, SuccessThreshold: 1, FailureThreshold: 2}
		if _, err := m.Watch(probe.Container{Name: endpoint, Readiness: &spec}); err != nil {
			return err
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	for state := range m.States() { // until Run ends
		fmt.Fprintf(out, "%s ready=%t %s\n", state.Container, *state.Ready, state.Message)
	}
	if err := <-ended; ctx.Err() == nil {
		return err
	}
	return nil
}

// handler says in a pod's words what a URL asks for; nothing for any other text.
func handler(endpoint string) (h corev1.ProbeHandler) {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
	case u.Scheme == "tcp":
		h.TCPSocket = &corev1.TCPSocketAction{Host: u.Hostname(), Port: intstr.Parse(u.Port())}
	case u.Scheme == "http", u.Scheme == "https":
		h.HTTPGet = &corev1.HTTPGetAction{Scheme: corev1.URIScheme(u.Scheme), Host: u.Hostname(), Port: intstr.Parse(u.Port()), Path: u.RequestURI()}
	}
	return h
}
