// Install makes the virtual machine that the tests run in. The tests call the
// same code by themselves, but would count its minutes as theirs.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"nodekit.dev/test/vm/machine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := machine.Install(ctx, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
