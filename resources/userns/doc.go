// Package userns gives pods ranges of the node's user and group IDs, one each,
// for user namespaces of their own (spec.hostUsers: false).
//
//	ranges, err := userns.New(userns.Config{PodsDir: "/var/lib/kubelet/pods"}, log)
//	r, err := ranges.Range(ctx, string(pod.UID)) // the same on each call
//	ranges.Release(string(pod.UID))              // when nothing of the pod runs
//
// A range is noted in the pod's directory, in the file "userns", where the stock
// kubelet has it and in its format, so that a node can be switched between the
// two. On first use, the files of all pods are read.
//
// Which IDs may be given away is told by Config.Owned: [Owned] asks the tool
// getsubids for those of the user "kubelet", as the stock kubelet does. By
// default it is all but the first range, which are the node's own.
//
// Rules for callers:
//
//   - Release comes after the last process of the pod: its IDs are another pod's
//     next.
//   - Nothing else writes to the files.
package userns
