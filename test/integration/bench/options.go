package bench

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Options say how much is measured.
type Options struct {
	// Pods are started and stopped one after the other; default 20.
	Pods int
	// Burst is how many are started at once, and run while memory and CPU are
	// measured; default 50.
	Burst int
	// Window is how long an idle agent is watched; default 20 s.
	Window time.Duration
	// Only leaves out the parts that it does not name; nil: all.
	Only []string
	// Progress is told what is being done; nil: nobody.
	Progress func(string)
}

// AddFlags adds a flag for each option, and for the names of the parts.
func (o *Options) AddFlags(flags *flag.FlagSet, parts []string) {
	flags.IntVar(&o.Pods, "pods", 20, "how many pods are started and stopped one after the other")
	flags.IntVar(&o.Burst, "burst", 50, "how many pods are started at once")
	flags.DurationVar(&o.Window, "window", 20*time.Second, "how long an idle agent is watched")
	flags.Func("only", "parts to run, with commas between: "+strings.Join(parts, ", "), func(names string) error {
		o.Only = strings.Split(names, ",")
		return nil
	})
}

// ProgressTo writes what is being done, with the seconds since now.
func (o *Options) ProgressTo(w io.Writer) {
	began := time.Now()
	o.Progress = func(what string) { fmt.Fprintf(w, "%6.1f s  %s\n", time.Since(began).Seconds(), what) }
}

// WithDefaults has the defaults where nothing was said.
func (o Options) WithDefaults() Options {
	if o.Pods == 0 {
		o.Pods = 20
	}
	if o.Burst == 0 {
		o.Burst = 50
	}
	if o.Window == 0 {
		o.Window = 20 * time.Second
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o
}

// Part is one piece of a run.
type Part struct {
	Name, What string
	Run        func(context.Context) error
}

// Names are the names of parts, for Options.Only.
func Names(parts []Part) []string {
	var names []string
	for _, p := range parts {
		names = append(names, p.Name)
	}
	return names
}

// Check says which of the names in Only is none of a part.
func (o Options) Check(parts []Part) error {
	for _, name := range o.Only {
		if names := Names(parts); !slices.Contains(names, name) {
			return fmt.Errorf("no part of the bench is called %q; there are %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

// RunAll runs the parts that were asked for, in order.
func (o Options) RunAll(ctx context.Context, parts []Part) error {
	for _, p := range parts {
		if len(o.Only) > 0 && !slices.Contains(o.Only, p.Name) {
			continue
		}
		o.Progress(p.What)
		if err := p.Run(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.What, err)
		}
	}
	return nil
}
