// Package beneath opens, makes and removes files below a directory without
// ever leaving it: no symlink leads out, and removal follows no symlink and
// crosses no mount. Whoever may write in the tree (a container in its volume)
// can swap a directory for a symlink at any moment; every step is therefore
// taken on an open file, never twice on one path.
//
//	root, err := beneath.OpenDir("/var/lib/kubelet/pods/UID/volumes/...")
//	sub, err := beneath.OpenOrMkdir(root, "logs/app", 0o777) // O_PATH, safe to bind-mount
//	err = beneath.RemoveAll(ctx, dir)                        // *MountError names a mount in the way
//
// The kernel does the work with openat2 (Linux 5.6). Where it is missing or
// forbidden by seccomp, a walk that refuses every symlink takes its place.
//
// The files returned are O_PATH handles, to be closed by the caller. All
// functions are safe for concurrent use.
package beneath
