package vm

import (
	"os"
	"os/exec"
	"strings"
	"testing"
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

// replayEnv makes TestReplay one that fails.
const replayEnv = "NODEKIT_VM_REPLAY"

func TestReplay(t *testing.T) {
	if os.Getenv(replayEnv) == "" {
		t.Skip("run by TestResultsAreReported")
	}
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
	self := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestReplay$/^Test.$", "-test.v")
	self.Env = append(os.Environ(), replayEnv+"=1")
	out, err := self.CombinedOutput()
	if err == nil {
		t.Error("it passed")
	}
	for _, want := range []string{
		"--- PASS: TestReplay/TestA ", "a_test.go:1: a note\n",
		"--- FAIL: TestReplay/TestB ", "--- FAIL: TestReplay/TestB/one ", "b_test.go:2: not so\n",
		"--- SKIP: TestReplay/TestC ", "c_test.go:3: needs more\n",
		"--- FAIL: TestReplay/TestD ", "panic: no way\n",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	for _, no := range []string{"\r", "not chosen"} {
		if strings.Contains(string(out), no) {
			t.Errorf("%q is in:\n%s", no, out)
		}
	}
}
