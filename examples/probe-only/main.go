// Command probe-only watches the endpoints that are its arguments, such as
// http://10.0.0.7:8080/healthz or tcp://10.0.0.7:5432, with package probe alone,
// and prints what changes.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"nodekit.dev/probe"
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
	m, err := probe.New(probe.Config{Checks: map[probe.Kind]probe.Check{"endpoint": check}})
	if err != nil {
		return err
	}
	spec := probe.Spec{Kind: "endpoint", Period: period, Timeout: time.Second, SuccessThreshold: 1, FailureThreshold: 2}
	for _, endpoint := range endpoints {
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
