package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
)

// event is one line of go test -json (see go doc test2json).
type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string
	Elapsed    float64 // seconds
	Output     string
}

// test names one test in one stage.
type test struct{ stage, pkg, name string }

func (t test) String() string {
	return fmt.Sprintf("%s %s (%s)", strings.TrimPrefix(t.pkg, "nodekit.dev/"), t.name, t.stage)
}

// report collects the events of all stages and prints packages as they end.
type report struct {
	out     io.Writer
	output  map[test]string // of what has not passed (yet)
	elapsed map[test]float64
	skipped map[test]bool
	bad     int
}

func newReport(out io.Writer) *report {
	return &report{out: out, output: map[test]string{}, elapsed: map[test]float64{}, skipped: map[test]bool{}}
}

// line takes one line of output; what is not JSON is printed as it is.
func (r *report) line(stage string, line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		fmt.Fprintf(r.out, "%s\n", line)
		return
	}
	r.event(stage, e)
}

func (r *report) event(stage string, e event) {
	t := test{stage: stage, pkg: e.Package, name: e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		r.output[t] += e.Output
	case "pass":
		r.ended(t, e)
		delete(r.output, t)
	case "skip":
		r.ended(t, e)
		if e.Test != "" {
			r.skipped[t] = true
		}
	case "fail":
		r.bad++
		r.ended(t, e)
		if e.Test == "" {
			r.printFailed(stage, e.Package)
		}
	}
}

// ended notes how long a test took, or prints one line for a package.
func (r *report) ended(t test, e event) {
	if t.name != "" {
		r.elapsed[t] = e.Elapsed
		return
	}
	if e.Action == "skip" { // no test files
		return
	}
	word := map[string]string{"pass": "ok  ", "fail": "FAIL"}[e.Action]
	fmt.Fprintf(r.out, "%s %-50s %7.2fs\n", word, strings.TrimPrefix(t.pkg, "nodekit.dev/"), e.Elapsed)
}

// printFailed prints what the tests of a failed package said: all that
// neither passed nor was skipped, and so also a test that never ended.
func (r *report) printFailed(stage, pkg string) {
	for _, t := range slices.SortedFunc(maps.Keys(r.output), byName) {
		if t.stage == stage && t.pkg == pkg && !r.skipped[t] {
			fmt.Fprint(r.out, r.output[t])
		}
	}
}

func (r *report) failed() bool { return r.bad > 0 }

// printSummary prints what was skipped and why, and the slowest tests.
func (r *report) printSummary(count int) {
	if len(r.skipped) > 0 {
		fmt.Fprintf(r.out, "\n%d skipped:\n", len(r.skipped))
		for _, t := range slices.SortedFunc(maps.Keys(r.skipped), byName) {
			fmt.Fprintf(r.out, "  %v: %s\n", t, reason(r.output[t]))
		}
	}
	tests := slices.SortedFunc(r.leaves(), func(a, b test) int {
		return cmp.Or(cmp.Compare(r.elapsed[b], r.elapsed[a]), byName(a, b))
	})
	fmt.Fprintf(r.out, "\nthe %d slowest of %d tests:\n", min(count, len(tests)), len(tests))
	for _, t := range tests[:min(count, len(tests))] {
		fmt.Fprintf(r.out, "%8.2fs  %v\n", r.elapsed[t], t)
	}
	fmt.Fprintln(r.out)
}

// leaves are the tests without subtests: the time of the others is that of these.
func (r *report) leaves() iter.Seq[test] {
	parents := map[test]bool{}
	for t := range r.elapsed {
		for i, c := range t.name {
			if c == '/' {
				parents[test{stage: t.stage, pkg: t.pkg, name: t.name[:i]}] = true
			}
		}
	}
	return func(yield func(test) bool) {
		for t := range r.elapsed {
			if !parents[t] && !yield(t) {
				return
			}
		}
	}
}

func byName(a, b test) int {
	return cmp.Or(cmp.Compare(a.stage, b.stage), cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.name, b.name))
}

// reason finds the text of t.Skip in a test's output: the last line that is not
// one of go test's own.
func reason(output string) string {
	reason := "no reason given"
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "--- ") && !strings.HasPrefix(line, "=== ") {
			reason = line
		}
	}
	return reason
}
