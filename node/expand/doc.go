// Package expand grows the volumes of running pods: when the controllers made a
// PersistentVolume bigger, each node that has it mounted grows what is on it, and
// the claim is told.
//
//	expander, err := expand.New(expand.Default(), expand.Parts{
//		Core: core, Volumes: manager.Recorded, Grower: grower, Event: event,
//	})
//	go expander.Run(ctx)  // through internal/tasks
//	expander.Changed()    // a volume was mounted or unmounted
//	expander.Grown(growth) // a volume was grown while it was mounted
//
// A claim that waits for its node says so in status.allocatedResourceStatuses
// (NodeResizePending), or, with controllers of before 1.32, in the condition
// FileSystemResizePending. A volume that several nodes have mounted is grown by
// each of them, also when the claim has the new size already (k/k#108693), unless
// the claim has the annotation volume.kubernetes.io/node-expansion-not-required.
//
// What the claim is told: NodeResizeInProgress before the first try; then the
// size, and all that says that it is being resized is taken away; or, where the
// driver can never do it, NodeResizeInfeasible with the condition
// NodeResizeError.
//
// The Node authorizer lets a node read a claim, but not watch it. So each claim
// whose driver can grow volumes is read once in [Config.Interval], as with the
// stock kubelet. Where the node may watch claims, because somebody allowed it
// (verbs get and watch on persistentvolumeclaims, for the group system:nodes),
// it does, and growth starts at once; then nothing is polled.
//
// Rules for callers: Changed and Grown never block and may be called at any
// time, also before Run.
package expand
