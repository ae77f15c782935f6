package app

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"nodekit.dev/node/server"
)

func (e *env) parts(cmd *cobra.Command, _ []string) error {
	var names []string
	if err := e.client().getJSON(cmd.Context(), "/debug/parts", &names); err != nil {
		return err
	}
	for _, name := range names {
		fmt.Fprintln(e.out, name)
	}
	return nil
}

// groups are the names that /debug/hooks shows.
type groups struct{ Sources, Mutators, Admitters, Hooks []string }

func (e *env) hooks(cmd *cobra.Command, _ []string) error {
	var g groups
	if err := e.client().getJSON(cmd.Context(), "/debug/hooks", &g); err != nil {
		return err
	}
	table := newTable(e, "GROUP", "IN THE ORDER OF THE CALLS")
	table.row("sources", strings.Join(g.Sources, ", "))
	table.row("mutators", strings.Join(g.Mutators, ", "))
	table.row("admitters", strings.Join(g.Admitters, ", "))
	table.row("hooks", strings.Join(g.Hooks, ", "))
	return table.Flush()
}

func (e *env) graph(cmd *cobra.Command, _ []string) error {
	body, err := e.client().get(cmd.Context(), "/debug/graph")
	if err != nil {
		return err
	}
	_, err = e.out.Write(body)
	return err
}

func (e *env) events(cmd *cobra.Command, args []string) error {
	var all []server.Event
	if err := e.client().getJSON(cmd.Context(), "/debug/events", &all); err != nil {
		return err
	}
	if len(args) > 0 {
		pod, err := e.find(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		all = eventsOf(all, pod.UID)
	}
	if e.output == outputJSON {
		data, err := json.Marshal(all)
		if err != nil {
			return err
		}
		return e.printJSON(data)
	}
	if len(all) == 0 {
		fmt.Fprintln(e.out, "No events.")
		return nil
	}
	now := time.Now()
	table := newTable(e, "AGE", "TYPE", "REASON", "ABOUT", "MESSAGE")
	for _, ev := range all {
		table.row(duration.HumanDuration(now.Sub(ev.Time)), string(ev.Type), ev.Reason, about(ev), oneLine(ev.Message))
	}
	return table.Flush()
}

func eventsOf(all []server.Event, uid string) []server.Event {
	kept := []server.Event{}
	for _, ev := range all {
		if ev.UID == uid {
			kept = append(kept, ev)
		}
	}
	return kept
}

// about is what an event tells of: a container, a pod or a manifest.
func about(ev server.Event) string {
	switch {
	case ev.Location != "":
		return ev.Location
	case ev.Container != "":
		return ev.Namespace + "/" + ev.Name + " " + ev.Container
	}
	return ev.Namespace + "/" + ev.Name
}

// oneLine keeps a table a table.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
