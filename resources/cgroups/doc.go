// Package cgroups makes and removes the cgroup of each pod on the host, for
// cgroup v1 and v2 with the cgroupfs driver. Names and values come from package
// resources; containers get cgroups of their own below from the runtime.
//
//	manager, err := cgroups.New(cgroups.Default(), log)
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
//   - Remove kills nothing. It waits a bounded time for processes to leave.
//   - The values of the QoS parents (kubepods/burstable and so on) are not this
//     package's; it makes these groups and leaves them as the kernel does.
//
// The systemd driver is refused by New until the agent speaks to systemd.
package cgroups
