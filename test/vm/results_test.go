package vm

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"nodekit.dev/test/integration/testbed"
)

// event is what `go tool test2json` says of one line of a test's output.
type event struct {
	Action string
	Test   string // empty: the package
	Output string
}

// ended says that the event is the verdict on its test.
func (e event) ended() bool { return e.Action == "pass" || e.Action == "fail" || e.Action == "skip" }

// results are the events of a run of tests, in order.
type results struct {
	next func() (event, error) // io.EOF at the end
	back *event                // to be read again
}

func (r *results) read() (event, error) {
	if e := r.back; e != nil {
		r.back = nil
		return *e, nil
	}
	return r.next()
}

// report makes what is said of a test, and of those below it, the result of t.
// The name is empty for all tests.
func (r *results) report(t *testing.T, name string) {
	for {
		e, err := r.read()
		switch {
		case errors.Is(err, io.EOF):
			t.Error("the machine ended before this did")
			return
		case err != nil:
			t.Errorf("the results can not be read: %v", err)
			return
		case e.ended() && e.Test != name:
			// One further up: a panic, or a call of os.Exit.
			t.Error("the tests ended before this did")
			r.back = &e
			return
		case e.ended():
			settle(t, e.Action)
			return
		case e.Action == "run":
			chosen := false
			t.Run(strings.TrimPrefix(e.Test, name+"/"), func(t *testing.T) { chosen = true; r.report(t, e.Test) })
			if !chosen { // by -run or -skip
				r.pass(e.Test)
			}
		case e.Action == "output" && !isFrame(e.Output):
			fmt.Fprint(t.Output(), e.Output)
		}
	}
}

// pass reads past all that is said of a test.
func (r *results) pass(name string) {
	for {
		if e, err := r.read(); err != nil || e.ended() && e.Test == name {
			return
		}
	}
}

func settle(t *testing.T, verdict string) {
	switch verdict {
	case "fail":
		t.Fail()
	case "skip":
		if os.Getenv(testbed.RequireAllEnv) != "" {
			t.Fatalf("%s is set, and this test did not run in the machine", testbed.RequireAllEnv)
		}
		t.SkipNow()
	}
}

// isFrame says that a line is go test's own, which the test here prints too.
func isFrame(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") || line == "PASS" || line == "FAIL"
}

// convert reads the output of tests that run with -test.v=test2json, as it
// comes over a serial line.
func convert(output io.Reader) (*results, func() error, error) {
	cmd := exec.Command("go", "tool", "test2json")
	cmd.Stdin = withoutReturns{bufio.NewReader(output)}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	lines := json.NewDecoder(stdout)
	r := &results{next: func() (e event, err error) { return e, lines.Decode(&e) }}
	return r, cmd.Wait, nil
}

// withoutReturns drops the carriage returns that a terminal adds.
type withoutReturns struct{ in *bufio.Reader }

func (w withoutReturns) Read(p []byte) (int, error) {
	n, err := w.in.Read(p)
	kept := 0
	for _, c := range p[:n] {
		if c != '\r' {
			p[kept] = c
			kept++
		}
	}
	return kept, err
}
