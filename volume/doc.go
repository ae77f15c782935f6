// Package volume makes a pod's volumes usable on the host and takes them away
// again: the [Plugin] seam, the [Manager] that mounts one volume at a time for
// whoever asks, and subPath resolution that no symlink escapes from.
//
//	m, err := volume.New(volume.Config{RootDir: "/var/lib/kubelet"}, plugins.Default(), log)
//	path, err := m.Mount(ctx, pod, "data")
//	mounts, err := m.ContainerMounts(ctx, volume.ContainerMountsRequest{Pod: pod, Container: "app"})
//	// ... the containers ran ...
//	err = m.Unmount(ctx, uid, "data")
//	err = m.RemovePodDir(ctx, uid)
//
// The layout is the stock kubelet's, so that a node can be switched both ways:
//
//	ROOT/pods/UID/volumes/PLUGIN/VOLUME                    the volume ("/" of the plugin's name as "~")
//	ROOT/pods/UID/volumes/PLUGIN/VOLUME.deleting~          a volume on its way out
//	ROOT/pods/UID/volumeDevices/PLUGIN/VOLUME              one that is a block device
//	ROOT/pods/UID/plugins/PLUGIN/VOLUME                    what the plugin notes about it
//	ROOT/pods/UID/volume-subpaths/VOLUME/CONTAINER/INDEX   bind mount of a subPath
//
// Rules:
//
//   - What is mounted is read from the host (directories and mountinfo), not
//     from memory: the call after a crash is the same call as the first, and
//     finishes or undoes what the crash left half done.
//   - Nothing is ever removed through a mount. A mount in the way is an error
//     that names it and says when to try again.
//   - All methods are safe for concurrent use. The caller does not mount and
//     unmount one volume of one pod at the same time.
//   - hostPath volumes have no directory here. They are not in what
//     [Manager.Mounted] lists (unless a subPath of theirs is), mounting them
//     again costs a stat, and unmounting them is only needed for subPaths.
//
// Plugins stand in volume/plugins.
package volume
