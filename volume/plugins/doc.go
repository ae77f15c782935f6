// Package plugins holds the volume plugins that come with nodekit: [EmptyDir]
// on disk and [HostPath]. [Default] is the set that the agent uses; a vendor
// puts its own plugins before or beside them:
//
//	all := append([]volume.Plugin{myPlugin}, plugins.Default()...)
//	m, err := volume.New(volume.Config{RootDir: root}, all, log)
//
// The plugins keep no state in memory and are safe for concurrent use.
package plugins

import "nodekit.dev/volume"

// Default is a new list of all plugins of this package.
func Default() []volume.Plugin {
	return []volume.Plugin{EmptyDir{}, HostPath{}}
}
