package app

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

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

func (e *env) hooks(cmd *cobra.Command, _ []string) error {
	body, err := e.client().get(cmd.Context(), "/debug/hooks")
	if err != nil {
		return err
	}
	groups, err := orderedGroups(body)
	if err != nil {
		return fmt.Errorf("GET /debug/hooks: %w", err)
	}
	table := newTable(e, "GROUP", "IN THE ORDER OF THE CALLS")
	for _, g := range groups {
		table.row(words(g.name), strings.Join(g.members, ", "))
	}
	return table.Flush()
}

func (e *env) routes(cmd *cobra.Command, _ []string) error {
	var all []server.ServedRoute
	if err := e.client().getJSON(cmd.Context(), "/debug/routes", &all); err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintln(e.out, "No HTTPS API is served.")
		return nil
	}
	table := newTable(e, "METHOD", "PATH", "OPENED BY", "READ-ONLY PORT")
	for _, r := range all {
		readOnly := ""
		if r.ReadOnly {
			readOnly = "too"
		}
		table.row(cmp.Or(r.Method, "all"), r.Path, "nodes/"+strings.Join(r.Subresources, " or nodes/"), readOnly)
	}
	return table.Flush()
}

// group is an ordered group and the names of its members.
type group struct {
	name    string
	members []string
}

// orderedGroups keeps the groups in the order in which the agent wrote them,
// whatever groups it has.
func orderedGroups(body []byte) (groups []group, err error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	if _, err := dec.Token(); err != nil { // the opening brace
		return nil, err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		g := group{name: fmt.Sprint(name)}
		if err := dec.Decode(&g.members); err != nil {
			return nil, err
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// words makes "sandbox mutators" of "SandboxMutators".
func words(name string) string {
	var out strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			out.WriteByte(' ')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
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
