package app

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
)

func (e *env) replay(cmd *cobra.Command, args []string) error {
	trace, err := readTrace(args[0], cmd.InOrStdin())
	if err != nil {
		return err
	}
	differ := 0
	for i, entry := range trace.Entries {
		same, err := e.again(i, entry)
		if err != nil {
			return fmt.Errorf("decision %d of %s: %w", i+1, args[0], err)
		}
		if !same {
			differ++
		}
	}
	if differ > 0 {
		return fmt.Errorf("%d of %d plans for %s/%s are not what was recorded", differ, len(trace.Entries), trace.Namespace, trace.Name)
	}
	fmt.Fprintf(e.out, "All %d plans for %s/%s are what was recorded.\n", len(trace.Entries), trace.Namespace, trace.Name)
	return nil
}

// again decides one input again and tells how it came out.
func (e *env) again(i int, entry podactor.TraceEntry) (same bool, err error) {
	plan, same, err := entry.Replay(lifecycle.Decide)
	if err != nil {
		return false, err
	}
	if same {
		fmt.Fprintf(e.out, "%3d  %s  same\n", i+1, entry.Input.Now.UTC().Format(clock))
		return true, nil
	}
	fmt.Fprintf(e.out, "%3d  %s  DIFFERS\n", i+1, entry.Input.Now.UTC().Format(clock))
	plan.Mem = lifecycle.Memory{} // a trace is without it
	lines, err := difference(entry.Plan, plan)
	for _, line := range lines {
		fmt.Fprintln(e.out, "     "+line)
	}
	return false, err
}

// readTrace reads what "nodectl pod -o json" wrote. A field that this version
// does not know would make the replay another decision, so it is an error.
func readTrace(name string, stdin io.Reader) (podactor.Trace, error) {
	var trace podactor.Trace
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return trace, err
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return trace, err
	}
	return decodeTrace(name, data)
}
