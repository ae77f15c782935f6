package app

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
)

// clock is how moments are shown: local time to the millisecond.
const clock = "15:04:05.000"

// history prints the trace: when, what had changed since the decision before,
// and what was planned then.
func (e *env) history(trace podactor.Trace) {
	fmt.Fprintln(e.out, "\nDecisions, oldest first:")
	var before podactor.TraceEntry
	for _, entry := range trace.Entries {
		fmt.Fprintln(e.out, entry.Input.Now.Local().Format(clock))
		e.list("saw", changes(before.Input, entry.Input))
		e.list("planned", planned(before.Plan.Status, entry))
		before = entry
	}
}

func (e *env) list(verb string, items []string) {
	for _, item := range items {
		fmt.Fprintf(e.out, "  %-8s %s\n", verb, item)
	}
}

// planned tells a plan, and the status where it differs from the one before.
func planned(before corev1.PodStatus, entry podactor.TraceEntry) (out []string) {
	plan := entry.Plan
	for _, a := range plan.Do {
		out = append(out, describe(a))
	}
	for _, key := range plan.Cancel {
		out = append(out, "cancel "+string(key))
	}
	for _, ev := range plan.Events {
		out = append(out, "event "+oneLine(ev.Container+" "+ev.Reason+": "+ev.Message))
	}
	if status := statusLine(plan.Status); status != statusLine(before) {
		out = append(out, "status "+status)
	}
	if !plan.Wake.IsZero() {
		out = append(out, "wake in "+plan.Wake.Sub(entry.Input.Now).Round(time.Millisecond).String())
	}
	return out
}

// describe is an action with what it works on.
func describe(a lifecycle.Action) string {
	words := []string{string(a.Kind)}
	for _, word := range []string{a.Container, a.Volume, a.Image, a.ContainerID, a.SandboxID} {
		if word != "" {
			words = append(words, word)
		}
	}
	if a.Attempt > 0 {
		words = append(words, fmt.Sprintf("attempt %d", a.Attempt))
	}
	if a.Kind == lifecycle.StopContainer {
		words = append(words, "within "+a.Grace.Round(time.Millisecond).String())
	}
	if a.Reason != "" || a.Message != "" {
		words = append(words, "("+oneLine(a.Reason+" "+a.Message)+")")
	}
	return strings.Join(words, " ")
}

// statusLine is what users see of a status.
func statusLine(s corev1.PodStatus) string {
	if s.Phase == "" {
		return ""
	}
	words := []string{strings.TrimSpace(string(s.Phase) + " " + s.Reason)}
	for _, group := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for _, c := range group {
			word := c.Name + " " + stateOf(c.State)
			if c.Ready {
				word += " and ready"
			}
			words = append(words, word)
		}
	}
	return strings.Join(words, "; ")
}
