package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// stage is one call of go test.
type stage struct {
	name string
	dir  string // seen from test/integration
	args []string
}

const tags = "-tags=grpcnotrace"

// stages are what `make test` consists of, the quickest to fail first.
func stages() []stage {
	return []stage{
		// Unit, policy, script and simulation tests; the examples are built
		// and run by their tests.
		{name: "unit", dir: "../..", args: []string{tags, "./..."}},
		{name: "race", dir: "../..", args: slices.Concat([]string{"-race", tags}, racePatterns())},
		// One package at a time: two cores are all that there is, and the tests
		// measure time. Never from the cache, which knows nothing of the agent
		// that they build and start.
		{name: "integration", dir: ".", args: []string{"-count=1", "-p=1", "-timeout=15m", "./..."}},
	}
}

// racePatterns leave out what has no goroutines of its own to race (policy)
// and what would take too long (simulation, scripts, examples).
func racePatterns() []string {
	patterns := []string{
		"./node/...", "./runtime/...", "./volume/...", "./probe/...", "./resources/...",
		"./shutdown/...", "./credentials/...", "./metrics/...", "./cmd/...",
	}
	helpers, _ := filepath.Glob("../../internal/*") // the pattern is well-formed
	for _, dir := range helpers {
		if name := filepath.Base(dir); name != "policy" {
			patterns = append(patterns, "./internal/"+name+"/...")
		}
	}
	return patterns
}

// choose picks stages by name; all when only is empty.
func choose(all []stage, only string) ([]stage, error) {
	if only == "" {
		return all, nil
	}
	var chosen []stage
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(s stage) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("testall: no stage %q", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// run gives each event of the stage to the report. The error is go's own: a
// test failed, or it could not run them.
func (s stage) run(ctx context.Context, r *report) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, s.args...)...)
	cmd.Dir, cmd.Stderr = s.dir, os.Stderr
	// Tests get the chance to clean up before they are killed.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 30 * time.Second
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		r.line(s.name, lines.Bytes())
	}
	return errors.Join(lines.Err(), cmd.Wait())
}
