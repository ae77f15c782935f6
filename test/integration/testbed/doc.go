// Package testbed starts a private containerd for a test: its own root, state,
// socket, bridge and subnet, and a registry on loopback with images made here.
// It needs root on a Debian machine with cgroup v1 or v2, and nothing else: what is
// missing is installed (Install) or built into the user's cache folder.
//
//	if err := testbed.Install(ctx); err != nil { ... }
//	bed, err := testbed.Start(ctx, testbed.Options{Version: testbed.V2})
//	if err != nil { ... }
//	defer bed.Stop(ctx)
//	agent, err := testbed.StartAgent(ctx, bed, testbed.AgentOptions{Manifests: dir})
//
// # Rules for callers
//
// One agent per bed: two agents on one containerd kill each other's pods.
//
// A bed lives in a numbered slot (folder, bridge nkbedN, subnet 10.213.N.0/24,
// cgroup /nkbedN), held by a file lock for as long as the process lives. Whoever
// takes a slot first removes all that an earlier, killed owner left there, so
// a killed test run needs no cleaning by hand. Stop is the same sweep.
package testbed
