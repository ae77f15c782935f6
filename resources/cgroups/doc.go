// Package cgroups makes and removes the cgroup of each pod on the host, for
// cgroup v1 and v2 with the drivers cgroupfs and systemd. Names and values come from package
// resources; containers get cgroups of their own below from the runtime.
//
//	manager, err := cgroups.New(cgroups.Default(), nil, log)
//	err = manager.Ensure(ctx, pod)          // before the sandbox
//	err = manager.Remove(ctx, string(uid))  // after the sandbox is gone
//
// Rules for callers:
//
//   - New does no I/O. What is mounted is looked up on each call, so a
//     controller that appears later is used.
//   - Ensure and Remove are idempotent and safe for concurrent use; not two at
//     once for one pod.
//   - A controller that is missing or not writable (in a container, on a kernel
//     without hugetlb) is one warning per controller, not an error: the pod runs
//     without that limit of its own, its containers still have theirs.
//   - Remove waits a bounded time for processes to leave, then kills them.
//   - The values of the QoS parents (kubepods/burstable and so on) are not this
//     package's; it makes these groups and leaves them as the kernel does.
//   - With the systemd driver, slices are made and limited by systemd, through
//     the seam Slices; what systemd has no property for (huge pages, cpusets of
//     v1) is written to the files as with cgroupfs.
package cgroups
