package nodefx

import (
	"fmt"
	"reflect"
	"strings"

	"nodekit.dev/node"
)

// seams lists every interface that Replace and Wrap take.
func seams() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[node.Engine](),
		reflect.TypeFor[node.Watcher](),
		reflect.TypeFor[node.Puller](),
		reflect.TypeFor[node.Mounter](),
		reflect.TypeFor[node.Allocator](),
		reflect.TypeFor[node.Cgroups](),
		reflect.TypeFor[node.Specs](),
		reflect.TypeFor[node.HookRunner](),
	}
}

// seamNames is the list as errors show it.
func seamNames() string {
	var names []string
	for _, t := range seams() {
		names = append(names, t.String())
	}
	return strings.Join(names, ", ")
}

// override returns what is known of an override of seam t so far.
func (s *settings) override(t reflect.Type) (*override, error) {
	for _, o := range s.overrides {
		if o.seam == t {
			return o, nil
		}
	}
	for _, known := range seams() {
		if known == t {
			o := &override{seam: t}
			s.overrides = append(s.overrides, o)
			return o, nil
		}
	}
	return nil, fmt.Errorf("%v is not a seam; these are: %s", t, seamNames())
}
