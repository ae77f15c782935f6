package app

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"nodekit.dev/node/server"
)

const debugPods = "/debug/pods"

// tracePath is where the agent shows what it decided about a pod.
func tracePath(uid string) string { return debugPods + "/" + url.PathEscape(uid) }

func (e *env) pods(cmd *cobra.Command, _ []string) error {
	if e.output == outputJSON {
		body, err := e.client().get(cmd.Context(), debugPods)
		if err != nil {
			return err
		}
		return e.printJSON(body)
	}
	lines, err := e.lines(cmd.Context())
	if err != nil {
		return err
	}
	if len(lines) == 0 {
		fmt.Fprintln(e.out, "The agent has no pods.")
		return nil
	}
	now := time.Now()
	table := newTable(e, "POD", "MACHINE", "PHASE", "READY", "RESTARTS", "AGE", "IP", "WAITING")
	for _, l := range lines {
		table.row(l.Namespace+"/"+l.Name, machine(l), string(l.Phase), l.Ready, strconv.Itoa(int(l.Restarts)),
			age(l.StartTime, now), strings.Join(l.IPs, ","), strings.Join(l.Waiting, ", "))
	}
	return table.Flush()
}

func (e *env) lines(ctx context.Context) ([]server.PodLine, error) {
	var lines []server.PodLine
	return lines, e.client().getJSON(ctx, debugPods, &lines)
}

// machine is the pod's place in the pod machine.
func machine(l server.PodLine) string {
	if l.Leaving {
		return l.Machine + " (leaving)"
	}
	return l.Machine
}

func age(start *metav1.Time, now time.Time) string {
	if start == nil {
		return ""
	}
	return duration.HumanDuration(now.Sub(start.Time))
}

// find is the one pod that a user means by a UID or NAMESPACE/NAME. While a pod
// waits for its predecessor, two have one name and the one that waits is last.
func (e *env) find(ctx context.Context, which string) (server.PodLine, error) {
	lines, err := e.lines(ctx)
	if err != nil {
		return server.PodLine{}, err
	}
	var found *server.PodLine
	for i, l := range lines {
		if (l.UID == which || l.Namespace+"/"+l.Name == which) && (found == nil || found.Leaving) {
			found = &lines[i]
		}
	}
	if found == nil {
		return server.PodLine{}, noPod(which, lines)
	}
	return *found, nil
}

func noPod(which string, lines []server.PodLine) error {
	for _, l := range lines {
		if strings.HasPrefix(l.UID, which) || strings.Contains(l.Name, which) {
			return fmt.Errorf("no pod %s; did you mean %s/%s (UID %s)?", which, l.Namespace, l.Name, l.UID)
		}
	}
	return fmt.Errorf("no pod %s; say its UID or NAMESPACE/NAME, nodectl pods lists the names, with -o json also the UIDs", which)
}

// table is a tabwriter with one header. Empty cells show a dash.
type table struct{ *tabwriter.Writer }

func newTable(e *env, header ...string) table {
	t := table{tabwriter.NewWriter(e.out, 0, 0, 2, ' ', 0)}
	t.row(header...)
	return t
}

func (t table) row(cells ...string) {
	for i, c := range cells {
		if c == "" {
			cells[i] = "-"
		}
	}
	fmt.Fprintln(t.Writer, strings.Join(cells, "\t"))
}
