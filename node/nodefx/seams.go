package nodefx

import (
	"reflect"
	"strings"

	"nodekit.dev/node"
	"nodekit.dev/node/handlers"
	"nodekit.dev/runtime/images"
)

// seams lists every interface that Replace and Wrap take.
func seams() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[node.Engine](),
		reflect.TypeFor[node.Watcher](),
		reflect.TypeFor[node.Puller](),
		reflect.TypeFor[images.PullAuth](),
		reflect.TypeFor[node.Mounter](),
		reflect.TypeFor[node.Allocator](),
		reflect.TypeFor[node.Cgroups](),
		reflect.TypeFor[node.Specs](),
		reflect.TypeFor[node.HookRunner](),
		reflect.TypeFor[handlers.Execer](),
	}
}

// Seams names every interface that [Replace] and [Wrap] take.
func Seams() []string {
	var names []string
	for _, t := range seams() {
		names = append(names, t.String())
	}
	return names
}

// seamNames is the list as errors show it.
func seamNames() string { return strings.Join(Seams(), ", ") }
