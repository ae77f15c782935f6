package app

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

func TestTextLog(t *testing.T) {
	var out bytes.Buffer
	sink := newLogSink(&out)
	log := newLogger(sink, formatText, 2)
	log.Info("shown", "pod", "a/b")
	log.Debug("V(4) is not shown")
	if out.Len() != 0 {
		t.Errorf("an info line was not buffered: %s", &out)
	}
	log.With("uid", "u").Warn("told at once")
	got := lines(out.String())
	if len(got) != 2 {
		t.Fatalf("got %q", got)
	}
	wantLine(t, got[0], `^I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ logs_test\.go:\d+\] "shown" pod="a/b"$`)
	wantLine(t, got[1], `^W\d{4} .* logs_test\.go:\d+\] "told at once" uid="u"$`)
}

func TestJSONLog(t *testing.T) {
	var out bytes.Buffer
	sink := newLogSink(&out)
	log := newLogger(sink, formatJSON, 4)
	log.WithGroup("g").Debug("deep", "ts", 1)
	log.Error("failed", "err", "why")
	var entries [2]map[string]any
	for i, line := range lines(out.String()) {
		if err := json.Unmarshal([]byte(line), &entries[i]); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
	}
	if e := entries[0]; e["msg"] != "deep" || e["v"] != 4.0 || e["ts"].(float64) < 1e12 || e["caller"] == "" {
		t.Errorf("an info line: %v", e)
	}
	if e := entries[1]; e["err"] != "why" || e["v"] != nil || e["level"] != nil {
		t.Errorf("an error line: %v", e)
	}
}

// A quiet log does not lag, whatever the period.
func TestLogIsFlushedByTime(t *testing.T) {
	for _, period := range []time.Duration{0, -1, time.Millisecond} {
		out := &log{}
		sink := newLogSink(out)
		stop := sink.keepFlushing(t.Context(), period)
		newLogger(sink, formatText, 0).Info("quiet")
		await(t, "flush", func() bool { return out.String() != "" })
		stop()
	}
}
