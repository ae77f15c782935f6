package node

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// InOrder sorts a group: each member comes after those that its After names;
// where that leaves a choice, names decide, so that the order never depends on
// the order of registration. Kind names the group in errors, such as "hook".
func InOrder[T any](kind string, members []Ordered[T]) ([]Ordered[T], error) {
	members = slices.SortedFunc(slices.Values(members), func(a, b Ordered[T]) int {
		return cmp.Compare(a.Name, b.Name)
	})
	if err := checkNames(kind, members); err != nil {
		return nil, err
	}
	out := make([]Ordered[T], 0, len(members))
	placed := map[string]bool{}
	for len(out) < len(members) {
		next := slices.IndexFunc(members, func(m Ordered[T]) bool {
			return !placed[m.Name] && !slices.ContainsFunc(m.After, func(name string) bool { return !placed[name] })
		})
		if next < 0 {
			return nil, fmt.Errorf("%s group: circle: %s", kind, circle(members, placed))
		}
		placed[members[next].Name] = true
		out = append(out, members[next])
	}
	return out, nil
}

// checkNames wants every name once, and every After to be a name. Members are
// sorted by name.
func checkNames[T any](kind string, members []Ordered[T]) error {
	known := map[string]bool{}
	for _, m := range members {
		switch {
		case m.Name == "":
			return fmt.Errorf("%s group: a member has no name", kind)
		case known[m.Name]:
			return fmt.Errorf("%s group: two members are called %q", kind, m.Name)
		}
		known[m.Name] = true
	}
	for _, m := range members {
		for _, after := range m.After {
			if !known[after] {
				return fmt.Errorf("%s group: %q comes after %q, which does not exist", kind, m.Name, after)
			}
		}
	}
	return nil
}

// circle walks from one member that can not be placed to what it waits for,
// until a name comes twice.
func circle[T any](members []Ordered[T], placed map[string]bool) string {
	waitsFor := map[string]string{}
	start := ""
	for _, m := range members {
		if placed[m.Name] {
			continue
		}
		start = cmp.Or(start, m.Name)
		for _, after := range m.After {
			if !placed[after] {
				waitsFor[m.Name] = after
			}
		}
	}
	var path []string
	for name := start; ; name = waitsFor[name] {
		if first := slices.Index(path, name); first >= 0 {
			return strings.Join(append(path[first:], name), " after ")
		}
		path = append(path, name)
	}
}
