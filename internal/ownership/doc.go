// Package ownership gives all files of a volume to a group, as a pod's fsGroup
// asks for.
//
//	done, err := ownership.Give(ctx, dir, ownership.Request{Group: 1000, OnlyOnMismatch: true})
//	// done.Files were looked at, done.Refused could not be changed
//
// Rules:
//
//   - The group may read and write (read, where the volume is read-only),
//     directories get the setgid bit besides, and no permission is taken away.
//   - It follows no symlink and crosses no mount, also while somebody changes
//     the tree: every change is made on an open handle.
//   - The volume's own directory is changed last, so that a walk that was cut
//     off is not taken for a whole one by OnlyOnMismatch.
//   - What is as it should be is not touched.
package ownership
