package config

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// State is what nodekit makes of a field or a flag.
type State string

// The states of the tables fields.txt and flags.txt.
const (
	// Acts: nodekit acts on it.
	Acts State = "acts"
	// InCluster: nodekit acts on it where the agent is a member of a cluster, and
	// tells at start where it is not.
	InCluster State = "cluster"
	// Later: accepted with a warning that names the part of nodekit that does
	// not do it yet.
	Later State = "later"
	// Moot: accepted in silence, since the stock kubelet does not act on it either.
	Moot State = "moot"
	// Differs: accepted, and told at start: nodekit does it otherwise.
	Differs State = "differs"
	// Refused: another value than the default is an error.
	Refused State = "refused"
)

// FieldInfo is one line of the table of fields.
type FieldInfo struct {
	// Path is that of a value, such as "logging.format", or of all that stands
	// below it.
	Path  string
	State State
	// Text is the part that does not do it yet (Later), or why (Moot, Differs,
	// Refused).
	Text string
}

//go:embed fields.txt
var fieldsText string

// Fields returns what nodekit makes of each field of KubeletConfiguration, in
// the order of the table.
func Fields() FieldTable {
	var out FieldTable
	for line := range tableLines(fieldsText) {
		path, rest, _ := strings.Cut(line, " ")
		state, text, _ := strings.Cut(strings.TrimSpace(rest), " ")
		out = append(out, FieldInfo{Path: path, State: State(state), Text: strings.TrimSpace(text)})
	}
	return out
}

// tableLines yields the lines that are neither empty nor comments.
func tableLines(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "#") && !yield(line) {
				return
			}
		}
	}
}

// FieldTable is the table fields.txt.
type FieldTable []FieldInfo

// Of returns the line that holds for a path; false where the table has lines
// for what stands below it, or none at all.
func (t FieldTable) Of(path string) (FieldInfo, bool) {
	for _, f := range t {
		if path == f.Path || strings.HasPrefix(path, f.Path+".") || strings.HasPrefix(path, f.Path+"[") {
			return f, true
		}
	}
	return FieldInfo{}, false
}

// ActedOn lists the paths of the fields that nodekit acts on, if only in a
// cluster, sorted.
func ActedOn() []string {
	var out []string
	for _, f := range Fields() {
		if f.State == Acts || f.State == InCluster {
			out = append(out, f.Path)
		}
	}
	slices.Sort(out)
	return out
}

// Missing are fields that were set and that one part of nodekit does not act
// on yet.
type Missing struct {
	Part   string
	Fields []string
}

func (m Missing) String() string {
	return fmt.Sprintf("%s does not act on %s yet", m.Part, strings.Join(m.Fields, ", "))
}

// SetFields lists what files and flags set, by the paths of the table. An empty
// value (0s, "", {}) says nothing, as in the files that kubeadm writes.
func (l *Loaded) SetFields() []FieldInfo {
	table := Fields()
	var out []FieldInfo
	for _, path := range table.set(l.Set, "") {
		if f, ok := table.Of(path); ok {
			out = append(out, FieldInfo{Path: path, State: f.State, Text: f.Text})
		}
	}
	return out
}

// NotActedOn lists the fields that a file or a flag set and that nodekit does
// not act on yet, by part.
func (l *Loaded) NotActedOn() []Missing {
	byPart := map[string][]string{}
	for _, f := range l.SetFields() {
		if f.State == Later {
			byPart[f.Text] = append(byPart[f.Text], f.Path)
		}
	}
	var out []Missing
	for _, part := range sortedKeys(byPart) {
		out = append(out, Missing{Part: part, Fields: byPart[part]})
	}
	return out
}

// set lists the paths of the table that a document gives a value, sorted.
func (t FieldTable) set(set map[string]any, parent string) (out []string) {
	for _, key := range sortedKeys(set) {
		path := join(parent, key)
		if saysNothing(set[key]) {
			continue
		}
		below, isMap := set[key].(map[string]any)
		if _, whole := t.Of(path); !whole && isMap {
			out = append(out, t.set(below, path)...)
			continue
		}
		out = append(out, path)
	}
	return out
}

// saysNothing is true for the values that the stock kubelet takes for "not set"
// in fields that have a default. false and 0 may be meant: they count as set.
func saysNothing(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == "" || v == "0s"
	case map[string]any:
		for _, below := range v {
			if !saysNothing(below) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return false
}
