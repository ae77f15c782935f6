// Package csinode tells the cluster which CSI drivers this node has: the CSINode
// object with their node IDs, topology keys and limits, and the Node's labels of
// topology and its annotation of node IDs. It also reads CSIDriver objects.
//
//	k, err := csinode.New(csinode.Config{NodeName: "n1"}, csinode.Parts{Core: core, Storage: storage, Node: node, Drivers: drivers})
//	go k.Run(ctx)          // through internal/tasks
//	k.Exhausted("disk.example") // a driver said that the node has no room for more volumes
//
//	objects := csinode.NewObjects(storage)
//	driver, err := objects.CSIDriver(ctx, "disk.example")
//
// Rules:
//
//   - What cannot be written is tried again for as long as it takes; nothing
//     waits for it.
//   - A driver that has not registered since the agent started stays in the
//     object: it may be about to. One that registered and went is taken out.
//   - A label of topology that has another value already is left, and the driver
//     is not told of, as with the stock kubelet.
//   - Drivers whose CSIDriver object has nodeAllocatableUpdatePeriodSeconds are
//     asked again how many volumes the node may have, that often, and whenever the
//     node turned out to have no room (k/enhancements 4876).
package csinode
