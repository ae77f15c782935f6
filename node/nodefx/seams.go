package nodefx

import (
	"reflect"
	"strings"

	"nodekit.dev/node"
	"nodekit.dev/node/environment"
	"nodekit.dev/node/handlers"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime/images"
	"nodekit.dev/volume/csi"
	"nodekit.dev/volume/plugins"
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
		reflect.TypeFor[node.Prober](),
		reflect.TypeFor[node.Environment](),
		reflect.TypeFor[node.RuntimeClasses](),
		reflect.TypeFor[node.UserNamespaces](),
		reflect.TypeFor[wire.VolumeStats](),
		reflect.TypeFor[plugins.ConfigMaps](),
		reflect.TypeFor[plugins.Secrets](),
		reflect.TypeFor[environment.Services](),
		reflect.TypeFor[plugins.Tokens](),
		reflect.TypeFor[plugins.TrustBundles](),
		reflect.TypeFor[plugins.PodCertificates](),
		reflect.TypeFor[csi.Connector](),
		reflect.TypeFor[csi.Drivers](),
		reflect.TypeFor[wire.Claims](),
		reflect.TypeFor[wire.NodeGetter](),
		reflect.TypeFor[wire.Registration](),
		reflect.TypeFor[wire.PodSource](),
		reflect.TypeFor[wire.StatusWriter](),
		reflect.TypeFor[wire.EventWriter](),
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
