// Bench is `make bench`: it measures the agent against the bare CRI calls of
// the same run and prints one table. It needs root. The exit code is 1 when a
// target is missed or something failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"nodekit.dev/test/integration/bench"
	"nodekit.dev/test/integration/testbed"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(ctx context.Context) (ok bool, err error) {
	var o bench.Options
	o.AddFlags(flag.CommandLine, bench.Parts())
	file := flag.String("json", "", "file to write the report to as JSON, besides the table")
	flag.Parse()
	o.ProgressTo(os.Stderr)
	o.Progress("what the bench needs")
	if err := testbed.Install(ctx); err != nil {
		return false, err
	}
	report, err := bench.Run(ctx, o)
	if report != nil {
		err = errors.Join(err, report.Print(os.Stdout))
		if *file != "" {
			err = errors.Join(err, report.WriteFile(*file))
		}
	}
	return err == nil && report.OK(), err
}
