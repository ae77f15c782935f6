package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"
)

// Report is all that one run measured. It is written as JSON, too.
type Report struct {
	Date    time.Time
	Commit  string
	Machine string
	// Load is the load average of the last minute when the run began and ended:
	// a busy machine makes times, and less so ratios, worse.
	Load [2]float64
	Rows []Row
}

// Row is one figure.
type Row struct {
	What  string
	Value float64
	Unit  string
	// Target is the most that Value may be; 0: it has no target.
	Target float64 `json:",omitempty"`
	// Note says what the figure is made of.
	Note string `json:",omitempty"`
}

// Missed says that the figure is over its target.
func (r Row) Missed() bool { return r.Target > 0 && r.Value > r.Target }

func (r Row) verdict() string {
	switch {
	case r.Target == 0:
		return ""
	case r.Missed():
		return "MISSED"
	}
	return "ok"
}

// OK says that every target was met.
func (r *Report) OK() bool {
	for _, row := range r.Rows {
		if row.Missed() {
			return false
		}
	}
	return true
}

// NewReport begins a report: its date, and what is measured where.
func NewReport(ctx context.Context) *Report {
	r := &Report{Date: time.Now().UTC(), Commit: commit(ctx), Machine: machine()}
	r.Load[0] = load()
	return r
}

// End notes the load at the end of what was measured.
func (r *Report) End() { r.Load[1] = load() }

// Add adds a figure; see AtMost and Note.
func (r *Report) Add(what string, value float64, unit string, more ...func(*Row)) {
	row := Row{What: what, Value: value, Unit: unit}
	for _, m := range more {
		m(&row)
	}
	r.Rows = append(r.Rows, row)
}

// AddFootprint adds what a process took over that window. The target is for its
// memory in MiB; 0: it has none.
func (r *Report) AddFootprint(what string, f Footprint, target float64, window time.Duration) {
	r.Add(what+": memory", MiB(f.RSS.Total), "MiB", AtMost(target),
		Note("resident; %.1f made, %.1f of the program's file", MiB(f.RSS.Anon), MiB(f.RSS.File)))
	r.Add(what+": CPU", f.MilliCPU, "millicores", Note("idle, over %v", window))
}

// AtMost gives a row its target.
func AtMost(target float64) func(*Row) { return func(r *Row) { r.Target = target } }

// Note says what a row's figure is made of.
func Note(format string, args ...any) func(*Row) {
	return func(r *Row) { r.Note = fmt.Sprintf(format, args...) }
}

// Print writes the report as one table.
func (r *Report) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s  commit %s  %s  load %.1f to %.1f\n\n",
		r.Date.Format("2006-01-02 15:04 MST"), r.Commit, r.Machine, r.Load[0], r.Load[1])
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "figure\tvalue\ttarget\tverdict\tmade of")
	for _, row := range r.Rows {
		target := ""
		if row.Target > 0 {
			target = "<= " + number(row.Target)
		}
		fmt.Fprintf(table, "%s\t%s %s\t%s\t%s\t%s\n", row.What, number(row.Value), row.Unit, target, row.verdict(), row.Note)
	}
	return table.Flush()
}

// number has as many digits as mean something.
func number(v float64) string {
	switch {
	case v >= 1000 || v == float64(int64(v)):
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// WriteFile writes the report as JSON.
func (r *Report) WriteFile(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// Millis is a time in milliseconds.
func Millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// MiB is a size in MiB.
func MiB(bytes int64) float64 { return float64(bytes) / (1 << 20) }
