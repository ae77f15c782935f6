package node_test

import (
	"strings"
	"testing"

	"nodekit.dev/node"
)

func TestInOrder(t *testing.T) {
	m := func(name string, after ...string) node.Ordered[int] {
		return node.Ordered[int]{Name: name, After: after}
	}
	for name, tc := range map[string]struct {
		members []node.Ordered[int]
		want    string
		err     string
	}{
		"empty":         {},
		"by name":       {members: []node.Ordered[int]{m("c"), m("a"), m("b")}, want: "a b c"},
		"after":         {members: []node.Ordered[int]{m("a", "c"), m("b"), m("c")}, want: "b c a"},
		"chain":         {members: []node.Ordered[int]{m("a", "b"), m("b", "c"), m("c")}, want: "c b a"},
		"diamond":       {members: []node.Ordered[int]{m("a", "b", "c"), m("b", "d"), m("c", "d"), m("d")}, want: "d b c a"},
		"no name":       {members: []node.Ordered[int]{m("")}, err: "hook group: a member has no name"},
		"double":        {members: []node.Ordered[int]{m("a"), m("a")}, err: `hook group: two members are called "a"`},
		"unknown":       {members: []node.Ordered[int]{m("a", "x")}, err: `hook group: "a" comes after "x", which does not exist`},
		"itself":        {members: []node.Ordered[int]{m("a", "a")}, err: "hook group: circle: a after a"},
		"circle":        {members: []node.Ordered[int]{m("a", "b"), m("b", "c"), m("c", "a"), m("d")}, err: "hook group: circle: a after b after c after a"},
		"behind circle": {members: []node.Ordered[int]{m("a", "b"), m("b", "c"), m("c", "b")}, err: "hook group: circle: b after c after b"},
	} {
		got, err := node.InOrder("hook", tc.members)
		var names []string
		for _, g := range got {
			names = append(names, g.Name)
		}
		if tc.err != "" {
			if err == nil || err.Error() != tc.err {
				t.Errorf("%s: error %v, want %s", name, err, tc.err)
			}
			continue
		}
		if joined := strings.Join(names, " "); err != nil || joined != tc.want {
			t.Errorf("%s: %q, %v; want %q", name, joined, err, tc.want)
		}
	}
}
