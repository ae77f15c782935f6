package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// table shows pods: on a terminal in place, else anew whenever a line changed.
type table struct {
	out      *os.File
	terminal bool
	shown    string // without ages, which always change
	lines    int    // on the screen now
}

func newTable(out *os.File) *table {
	info, err := out.Stat()
	return &table{out: out, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// startAnew leaves what is on the screen alone from now on.
func (t *table) startAnew() { t.lines = 0 }

func (t *table) show(pods []corev1.Pod) {
	pods = slices.SortedFunc(slices.Values(pods), func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	now := time.Now()
	text := render(pods, func(p corev1.Pod) string { return age(p, now) })
	if t.terminal {
		if t.lines > 0 {
			fmt.Fprintf(t.out, "\x1b[%dA\x1b[J", t.lines) // up, and clear to the end
		}
		fmt.Fprint(t.out, text)
		t.lines = strings.Count(text, "\n")
		return
	}
	if same := render(pods, func(corev1.Pod) string { return "" }); same != t.shown {
		t.shown = same
		fmt.Fprintf(t.out, "%s\n", text)
	}
}

func render(pods []corev1.Pod, age func(corev1.Pod) string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "POD\tREADY\tSTATUS\tRESTARTS\tIP\tAGE")
	for _, p := range pods {
		ready, restarts := 0, int32(0)
		for _, c := range p.Status.ContainerStatuses {
			restarts += c.RestartCount
			if c.Ready {
				ready++
			}
		}
		fmt.Fprintf(w, "%s\t%d/%d\t%s\t%d\t%s\t%s\n",
			p.Name, ready, len(p.Spec.Containers), stateOf(p), restarts, cmp.Or(p.Status.PodIP, "-"), age(p))
	}
	w.Flush()
	return b.String()
}

func age(p corev1.Pod, now time.Time) string {
	if p.Status.StartTime == nil {
		return "-"
	}
	return now.Sub(p.Status.StartTime.Time).Round(time.Second).String()
}
