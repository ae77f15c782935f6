package logs

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var logStart = time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)

// raw makes a log entry that was written that many seconds after logStart.
func raw(second int, stream, tag, text string) string {
	at := logStart.Add(time.Duration(second) * time.Second).Format(time.RFC3339Nano)
	return at + " " + stream + " " + tag + " " + text + "\n"
}

func writeLog(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "0.log")
	if err := os.WriteFile(path, []byte(content), 0o640); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestParseEntry(t *testing.T) {
	cases := []struct {
		in      string
		stream  string
		partial bool
		text    string
		bad     bool
	}{
		{in: "2026-05-01T10:00:00.123456789Z stdout F hello  world ", stream: Stdout, text: "hello  world "},
		{in: "2026-05-01T10:00:00.1+02:00 stderr P part", stream: Stderr, partial: true, text: "part"},
		{in: "2026-05-01T10:00:00Z stdout F ", stream: Stdout},
		{in: "2026-05-01T10:00:00Z stdout P:later:tags x", stream: Stdout, partial: true, text: "x"},
		{in: "", bad: true},
		{in: "2026-05-01T10:00:00Z stdout F", bad: true},
		{in: "yesterday stdout F x", bad: true},
		{in: "2026-05-01T10:00:00Z stdin F x", bad: true},
		{in: "2026-05-01T10:00:00Z stdout Q x", bad: true},
		{in: `{"log":"docker","stream":"stdout"}`, bad: true},
	}
	for _, c := range cases {
		e, err := ParseEntry([]byte(c.in))
		if (err != nil) != c.bad {
			t.Errorf("%q: %v", c.in, err)
			continue
		}
		if e.Stream != c.stream || e.Partial != c.partial || string(e.Text) != c.text {
			t.Errorf("%q: %+v", c.in, e)
		}
	}
}

func FuzzParseEntry(f *testing.F) {
	f.Add([]byte("2026-05-01T10:00:00.123456789Z stdout F hello"))
	f.Add([]byte("2026-05-01T10:00:00Z stderr P:x "))
	f.Add([]byte("  "))
	f.Fuzz(func(t *testing.T, in []byte) {
		e, err := ParseEntry(in)
		if err == nil && !bytes.HasSuffix(in, e.Text) {
			t.Fatalf("text %q is not the end of %q", e.Text, in)
		}
	})
}

func TestCopyOptions(t *testing.T) {
	mixed := raw(0, Stdout, "F", "one") +
		raw(1, Stdout, "P", "two-") +
		raw(2, Stderr, "F", "err") +
		raw(3, Stdout, "F", "done") +
		"not a log entry\n" +
		raw(4, Stdout, "F", "") +
		raw(5, Stderr, "F", "last")
	cases := []struct {
		name    string
		content string
		opts    Options
		want    string
	}{
		{"all", mixed, Options{}, "one\nerr\ntwo-done\n\nlast\n"},
		{"stdout only", mixed, Options{Stream: Stdout}, "one\ntwo-done\n\n"},
		{"stderr only", mixed, Options{Stream: Stderr}, "err\nlast\n"},
		{"tail counts joined lines", mixed, Options{Tail: Last(3)}, "two-done\n\nlast\n"},
		{"tail takes an older part along", mixed, Options{Tail: Last(3), Stream: Stdout}, "one\ntwo-done\n\n"},
		{"tail of one stream", mixed, Options{Tail: Last(1), Stream: Stderr}, "last\n"},
		{"tail longer than the log", mixed, Options{Tail: Last(99)}, "one\nerr\ntwo-done\n\nlast\n"},
		{"tail of nothing", mixed, Options{Tail: Last(0)}, ""},
		{"since goes by the beginning of a line", mixed, Options{Since: logStart.Add(2 * time.Second)}, "err\n\nlast\n"},
		{"limit cuts in a line", mixed, Options{LimitBytes: Last(6)}, "one\ner"},
		{"limit of nothing", mixed, Options{LimitBytes: Last(0)}, ""},
		{"limit with tail", mixed, Options{LimitBytes: Last(3), Tail: Last(1)}, "las"},
		{"timestamps", raw(0, Stdout, "P", "a") + raw(1, Stdout, "F", "b"), Options{Timestamps: true}, "2026-05-01T10:00:00.000000000Z ab\n"},
		{"a line that never ended", raw(0, Stdout, "F", "a") + raw(1, Stdout, "P", "prompt> "), Options{}, "a\nprompt> "},
		{"an entry that is still being written", raw(0, Stdout, "F", "a") + strings.TrimSuffix(raw(1, Stdout, "F", "hal"), "\n"), Options{}, "a\n"},
		{"tail before an entry that is still being written", raw(0, Stdout, "F", "a") + raw(1, Stdout, "F", "b") + "2026-05-01T", Options{Tail: Last(1)}, "b\n"},
		{"empty", "", Options{Tail: Last(5)}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			err := Copy(t.Context(), Request{Path: writeLog(t, c.content), Options: c.opts, Stdout: &out, Stderr: &out})
			if err != nil || out.String() != c.want {
				t.Fatalf("got %q, %v\nwant %q", out.String(), err, c.want)
			}
		})
	}
}

func TestCopySplitsStreams(t *testing.T) {
	path := writeLog(t, raw(0, Stdout, "F", "o")+raw(1, Stderr, "F", "e"))
	var out, errs bytes.Buffer
	if err := Copy(t.Context(), Request{Path: path, Stdout: &out, Stderr: &errs}); err != nil {
		t.Fatal(err)
	}
	if out.String() != "o\n" || errs.String() != "e\n" {
		t.Fatalf("stdout %q, stderr %q", out.String(), errs.String())
	}
}

func TestCopyHandsOnVeryLongLinesInPieces(t *testing.T) {
	part := strings.Repeat("x", 16<<10)
	var content strings.Builder
	const parts = 150 // 2.4 MB
	for range parts {
		content.WriteString(raw(0, Stdout, "P", part))
	}
	content.WriteString(raw(0, Stdout, "F", "end"))
	var out bytes.Buffer
	err := Copy(t.Context(), Request{Path: writeLog(t, content.String()), Options: Options{Timestamps: true}, Stdout: &out})
	want := "2026-05-01T10:00:00.000000000Z " + strings.Repeat(part, parts) + "end\n"
	if err != nil || out.String() != want {
		t.Fatalf("%d bytes, %v; want %d", out.Len(), err, len(want))
	}
}

func TestCopyRefusesAndReports(t *testing.T) {
	path := writeLog(t, raw(0, Stdout, "F", "x"))
	for _, o := range []Options{{Tail: Last(-1)}, {LimitBytes: Last(-1)}, {Stream: "stdin"}} {
		if err := Copy(t.Context(), Request{Path: path, Options: o}); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	if err := Copy(t.Context(), Request{Path: path + "x"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing log: %v", err)
	}
	broken := errors.New("client went away")
	if err := Copy(t.Context(), Request{Path: path, Stdout: failing{broken}}); !errors.Is(err, broken) {
		t.Errorf("writer's error: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// Tail must agree with reading all and keeping the last lines, whatever the
// mix of parts, streams and sizes.
func TestTailAgreesWithTheWholeLog(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		var content strings.Builder
		size := []int{10, 300, 20000}[round%3]
		for i := range 40 {
			stream := []string{Stdout, Stderr}[rng.IntN(2)]
			tag := []string{"F", "F", "P"}[rng.IntN(3)]
			content.WriteString(raw(i, stream, tag, fmt.Sprintf("%d:%s", i, strings.Repeat("y", rng.IntN(size)))))
		}
		// Both streams end with a whole line.
		content.WriteString(raw(41, Stdout, "F", "end") + raw(42, Stderr, "F", "end"))
		path := writeLog(t, content.String())
		for _, stream := range []string{"", Stdout, Stderr} {
			all := lines(t, path, Options{Stream: stream})
			for _, n := range []int{1, 2, 5, 17, 100} {
				got := lines(t, path, Options{Stream: stream, Tail: Last(int64(n))})
				want := all[max(0, len(all)-n):]
				if !slices.Equal(got, want) {
					t.Fatalf("round %d stream %q tail %d: %d lines, want %d", round, stream, n, len(got), len(want))
				}
			}
		}
	}
}

func lines(t *testing.T, path string, o Options) []string {
	t.Helper()
	var out bytes.Buffer
	if err := Copy(t.Context(), Request{Path: path, Options: o, Stdout: &out, Stderr: &out}); err != nil {
		t.Fatal(err)
	}
	return strings.SplitAfter(strings.TrimSuffix(out.String(), "\n"), "\n")
}
