// Install builds the control plane that the cluster tests run against, and
// brings what a bed needs. Tests call the same code by themselves.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"nodekit.dev/test/cluster/install"
	"nodekit.dev/test/integration/testbed"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	programs, err := install.ControlPlane(ctx, os.Stderr)
	err = errors.Join(err, testbed.Install(ctx))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(programs.Kubectl)
}
