package main

import (
	"strings"
	"testing"
)

const events = `{"Action":"output","Package":"nodekit.dev/a","Test":"TestSlow","Output":"=== RUN TestSlow\n"}
{"Action":"pass","Package":"nodekit.dev/a","Test":"TestSlow/case","Elapsed":2.5}
{"Action":"pass","Package":"nodekit.dev/a","Test":"TestSlow","Elapsed":2.5}
{"Action":"output","Package":"nodekit.dev/a","Test":"TestSkip","Output":"    a_test.go:7: needs root\n"}
{"Action":"output","Package":"nodekit.dev/a","Test":"TestSkip","Output":"--- SKIP: TestSkip (0.00s)\n"}
{"Action":"skip","Package":"nodekit.dev/a","Test":"TestSkip","Elapsed":0}
{"Action":"pass","Package":"nodekit.dev/a","Elapsed":2.6}
{"Action":"output","Package":"nodekit.dev/b","Test":"TestBad","Output":"    b_test.go:9: got 1, want 2\n"}
{"Action":"fail","Package":"nodekit.dev/b","Test":"TestBad","Elapsed":0.5}
{"Action":"output","Package":"nodekit.dev/b","Test":"TestHung","Output":"panic: test timed out\n"}
{"Action":"fail","Package":"nodekit.dev/b","Elapsed":1}
{"Action":"skip","Package":"nodekit.dev/empty","Elapsed":0}
not json
`

func TestReport(t *testing.T) {
	var out strings.Builder
	r := newReport(&out)
	for line := range strings.Lines(events) {
		r.line("unit", []byte(strings.TrimSuffix(line, "\n")))
	}
	r.printSummary(1)
	if !r.failed() {
		t.Error("a failed test was not counted")
	}
	for _, want := range []string{
		"got 1, want 2", "test timed out", "not json", "ok   a ",
		"1 skipped:\n  a TestSkip (unit): a_test.go:7: needs root\n",
		"the 1 slowest of 3 tests:\n    2.50s  a TestSlow/case (unit)\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report has no %q:\n%s", want, &out)
		}
	}
	for _, not := range []string{"RUN TestSlow", "empty", "0.50s"} {
		if strings.Contains(out.String(), not) {
			t.Errorf("the report has %q:\n%s", not, &out)
		}
	}
}
