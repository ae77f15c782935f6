// Bench is `make bench`: it measures the agent against the bare CRI calls of
// the same run and prints one table. It needs root. The exit code is 1 when a
// target is missed or something failed.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

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
	flag.IntVar(&o.Pods, "pods", 20, "how many pods are started and stopped one after the other")
	flag.IntVar(&o.Burst, "burst", 50, "how many pods are started at once")
	flag.DurationVar(&o.Window, "window", 20*time.Second, "how long an idle agent is watched")
	only := flag.String("only", "", "parts to run, with commas between: "+strings.Join(bench.Parts(), ", "))
	file := flag.String("json", "", "file to write the report to as JSON, besides the table")
	flag.Parse()
	if *only != "" {
		o.Only = strings.Split(*only, ",")
	}
	began := time.Now()
	o.Progress = func(what string) { fmt.Fprintf(os.Stderr, "%6.1f s  %s\n", time.Since(began).Seconds(), what) }

	o.Progress("what the bench needs")
	if err := testbed.Install(ctx); err != nil {
		return false, err
	}
	report, err := bench.Run(ctx, o)
	if report != nil {
		err = errors.Join(err, report.Print(os.Stdout))
		if *file != "" {
			err = errors.Join(err, writeJSON(*file, report))
		}
	}
	return err == nil && report.OK(), err
}

func writeJSON(file string, report *bench.Report) error {
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
