package vm

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"nodekit.dev/test/integration/testbed"
)

// said is the output of tests with -test.v=test2json, as it comes over a serial
// line, up to a panic. "^" stands for the byte that marks go test's own lines.
const said = `^=== RUN   TestA
    a_test.go:1: a note
^--- PASS: TestA (0.10s)
^=== RUN   TestB
^=== RUN   TestB/one
^=== NAME  TestB/one
    b_test.go:2: not so
^--- FAIL: TestB (0.30s)
^    --- FAIL: TestB/one (0.20s)
^=== RUN   TestC
    c_test.go:3: needs more
^--- SKIP: TestC (0.00s)
^=== RUN   TestNotChosen
    n_test.go:4: not chosen
^--- PASS: TestNotChosen (0.00s)
^=== RUN   TestD
panic: no way
`

// replayEnv makes TestResultsAreReported report what was said: its child, which fails.
const replayEnv = "NODEKIT_VM_REPLAY"

func replay(t *testing.T) {
	r, wait, err := convert(strings.NewReader(strings.NewReplacer("^", "\x16", "\n", "\r\n").Replace(said)))
	if err != nil {
		t.Fatal(err)
	}
	r.report(t, "")
	if err := wait(); err != nil {
		t.Error(err)
	}
}

// What tests say in the machine, the tests here say too.
func TestResultsAreReported(t *testing.T) {
	if os.Getenv(replayEnv) != "" {
		replay(t)
		return
	}
	out := replayed(t, "")
	for _, want := range []string{
		"--- PASS: TestResultsAreReported/TestA ", "a_test.go:1: a note\n",
		"--- FAIL: TestResultsAreReported/TestB ", "--- FAIL: TestResultsAreReported/TestB/one ", "b_test.go:2: not so\n",
		"--- SKIP: TestResultsAreReported/TestC ", "c_test.go:3: needs more\n",
		"--- FAIL: TestResultsAreReported/TestD ", "panic: no way\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	for _, no := range []string{"\r", "not chosen"} {
		if strings.Contains(out, no) {
			t.Errorf("%q is in:\n%s", no, out)
		}
	}
	if out := replayed(t, "1"); !strings.Contains(out, "--- FAIL: TestResultsAreReported/TestC ") {
		t.Errorf("with %s a skip in the machine is no failure:\n%s", testbed.RequireAllEnv, out)
	}
}

// replayed is the output of a child that reports what was said.
func replayed(t *testing.T, requireAll string) string {
	self := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestResultsAreReported$/^Test.$", "-test.v")
	self.Env = append(os.Environ(), replayEnv+"=1", testbed.RequireAllEnv+"="+requireAll)
	out, err := self.CombinedOutput()
	if err == nil {
		t.Error("it passed")
	}
	return string(out)
}
