// Package claims tells what the PersistentVolumeClaims of pods are bound to, as
// the API server says, and waits until such a volume is attached to the node.
//
//	c, err := claims.New(claims.Config{NodeName: "n1"}, claims.Parts{Core: core, Storage: storage, Node: cache.Node})
//	manager, err := volume.New(volume.Config{RootDir: root, Claims: c}, plugins, log)
//	// and in the registration: register.Parts{VolumesInUse: c.InUse}
//	c.NodeChanged()   // whenever the Node object changed
//	c.Release(uid)    // when nothing of the pod is left on the node
//
// The way of a claim:
//
//	claim bound? ──▶ its volume ──▶ fits node and pod? ──▶ in node.status.volumesInUse ──▶ in volumesAttached
//
// Rules:
//
//   - Waiting for an attach is no failure: Claimed blocks, nothing is tried, told
//     or slowed down meanwhile, and a change of the Node object ends the wait at
//     once (k/k#106853). After two minutes the pod is told, and waits anew.
//   - A volume is in use from the moment that a pod waits for it until nothing
//     of the pod is left on the node. What is mounted is read from the host, so
//     that after a restart it is in use as before, and is not once an orphan of
//     an earlier agent is taken away.
//   - Objects are read with GET, which is all that the Node authorizer allows.
package claims
