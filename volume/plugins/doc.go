// Package plugins holds the volume plugins that come with nodekit: [EmptyDir],
// [HostPath], [Local] and [NFS], which need nothing ([Default]), and those for
// volumes that objects fill, configMap, secret, downwardAPI and projected
// ([FromObjects]); [Stock] is all of them, and image volumes. [Removed] says what took the place of volumes that are no
// more. A vendor puts its own plugins before or beside them:
//
//	all := append([]volume.Plugin{myPlugin}, plugins.Default()...)
//	all = append(all, plugins.FromObjects(plugins.Sources{ConfigMaps: cache, Secrets: cache})...)
//	m, err := volume.New(volume.Config{RootDir: root}, all, log)
//
// Volumes that objects fill:
//
//   - Files appear and change all at once, by the ..data symlink that
//     applications know from the stock kubelet.
//   - Secret, downwardAPI and projected volumes are in memory, kept out of swap
//     where the kernel can; configMap volumes are on the disk.
//   - Containers can not write to them. With an fsGroup that group can read.
//   - A change that can not be read, or that would be invalid, leaves the old
//     content in place. So does an object that was deleted.
//   - A container that mounts a subPath keeps what it was started with.
//
// The plugins keep no state in memory and are safe for concurrent use.
package plugins

import "nodekit.dev/volume"

// Default is a new list of the plugins that need no objects.
func Default() []volume.Plugin {
	return []volume.Plugin{EmptyDir{}, HostPath{}, NewLocal(nil), NFS{}, Removed{}}
}
