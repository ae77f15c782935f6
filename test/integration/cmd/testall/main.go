// Testall runs the project's tests, stage after stage, whatever fails, and
// prints what failed and why, what was skipped and why, and the ten slowest
// tests. It is what `make test` calls; run it in the module's own folder.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	only := flag.String("only", "", "run only the stages with these names, with commas between")
	list := flag.Bool("list", false, "list the stages and end")
	flag.Parse()

	stages, err := choose(stages(), *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if *list {
		for _, s := range stages {
			fmt.Printf("%-12s in %-18s go test %s\n", s.name, s.dir, strings.Join(s.args, " "))
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok := runAll(ctx, stages)
	stop()
	if !ok {
		os.Exit(1)
	}
}

// runAll runs every stage and prints the report.
func runAll(ctx context.Context, stages []stage) bool {
	began := time.Now()
	report := newReport(os.Stdout)
	ok := true
	for _, s := range stages {
		start := time.Now()
		fmt.Printf("=== %s\n", s.name)
		if err := s.run(ctx, report); err != nil {
			ok = false
			fmt.Printf("=== %s FAILED: %v\n", s.name, err)
		}
		fmt.Printf("=== %s took %v\n", s.name, time.Since(start).Round(100*time.Millisecond))
		if ctx.Err() != nil {
			fmt.Println("=== interrupted")
			return false
		}
	}
	report.printSummary(10)
	verdict := "all passed"
	if !ok || report.failed() {
		verdict = "FAILED"
	}
	fmt.Printf("%s in %v\n", verdict, time.Since(began).Round(time.Second))
	return verdict == "all passed"
}
