package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// unknownField is what is wrong with most problems.
const unknownField = "unknown field"

// Problem is one field of one file that is not as it should be.
type Problem struct {
	File  string
	Line  int
	Field string // path such as "logging.format"
	What  string // "unknown field", "duplicate field", ...
	// Nearest is the known field that the user probably meant; may be empty.
	Nearest string
}

func (p Problem) Error() string {
	s := fmt.Sprintf("%s:%d: %s %q", p.File, p.Line, p.What, p.Field)
	if p.Nearest != "" {
		s += fmt.Sprintf(" (did you mean %q?)", p.Nearest)
	}
	return s
}

// checked is what a walk along a document found.
type checked struct {
	// problems leave the document usable: unknown and duplicate fields.
	problems []Problem
	// broken are values of a wrong type.
	broken []error
	// places are where each value of a known field stands, by path.
	places map[string]Place
}

// Place is where a value was set.
type Place struct {
	File string
	Line int
}

func (p Place) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// checkFields walks a document along the Go type that it will be decoded into.
func checkFields(doc document, t reflect.Type) checked {
	w := walker{file: doc.file, following: map[*yaml.Node]bool{}, checked: checked{places: map[string]Place{}}}
	w.walk(doc.root, t, "")
	return w.checked
}

type walker struct {
	checked

	file      string
	following map[*yaml.Node]bool // nodes on the way down, so that an alias to itself ends
}

func (w *walker) walk(n *yaml.Node, t reflect.Type, path string) {
	if w.following[n] {
		return
	}
	w.following[n] = true
	defer delete(w.following, n)
	if n.Kind == yaml.AliasNode {
		w.walk(n.Alias, t, path)
		return
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if path != "" {
		w.places[path] = Place{File: w.file, Line: n.Line}
	}
	if problem := misfit(n, t); problem != "" {
		w.broken = append(w.broken, fmt.Errorf("%s:%d: %s: %s", w.file, n.Line, path, problem))
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		w.mapping(n, t, path)
	case yaml.SequenceNode:
		if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
			for i, c := range n.Content {
				w.walk(c, t.Elem(), fmt.Sprintf("%s[%d]", path, i))
			}
		}
	case yaml.DocumentNode, yaml.ScalarNode, yaml.AliasNode:
	}
}

func (w *walker) mapping(n *yaml.Node, t reflect.Type, path string) {
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag == "!!merge" {
			w.merged(value, t, path)
			continue
		}
		field := join(path, key.Value)
		if line, again := first[key.Value]; again {
			w.report(key, field, fmt.Sprintf("duplicate field (first on line %d; this one counts)", line), "")
		}
		first[key.Value] = key.Line
		w.entry(key, value, t, field, path)
	}
}

// merged looks at what a "<<" brings: one mapping, or a list of them.
func (w *walker) merged(n *yaml.Node, t reflect.Type, path string) {
	if n.Kind != yaml.SequenceNode {
		w.walk(n, t, path)
		return
	}
	for _, c := range n.Content {
		w.walk(c, t, path)
	}
}

func (w *walker) entry(key, value *yaml.Node, t reflect.Type, field, parent string) {
	switch {
	case t.Kind() == reflect.Map:
		w.walk(value, t.Elem(), field)
	case t.Kind() == reflect.Struct && !decodesItself(t):
		known := jsonFields(t)
		if ft, ok := known[key.Value]; ok {
			w.walk(value, ft, field)
			return
		}
		near := nearest(key.Value, known)
		if near != "" {
			near = join(parent, near)
		}
		w.report(key, field, unknownField, near)
	}
}

func (w *walker) report(at *yaml.Node, field, what, nearest string) {
	w.problems = append(w.problems, Problem{File: w.file, Line: at.Line, Field: field, What: what, Nearest: nearest})
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// decodesItself is true for types such as metav1.Duration and
// resource.Quantity, whose JSON does not look like their fields.
func decodesItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// jsonFields lists the JSON names of a struct, those of inlined structs included.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for f := range fieldsOf(t) {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && (f.Anonymous || strings.Contains(opts, "inline")):
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			for n, t := range jsonFields(inner) {
				fields[n] = t
			}
		case name == "":
			fields[f.Name] = f.Type
		default:
			fields[name] = f.Type
		}
	}
	return fields
}

func fieldsOf(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && !yield(f) {
				return
			}
		}
	}
}

// nearest returns the known name within a third of the length, "" if none is.
func nearest[V any](name string, known map[string]V) string {
	best, bestDistance := "", max(2, len(name)/3)+1
	for k := range known {
		d := distance(strings.ToLower(name), strings.ToLower(k))
		if d < bestDistance || (d == bestDistance && best != "" && k < best) {
			best, bestDistance = k, d
		}
	}
	return best
}

// distance is Levenshtein's, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
