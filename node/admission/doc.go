// Package admission decides whether a pod may run on this node, by what the
// scheduler may not have known: the node's labels and taints as they are now,
// and host ports that other pods hold. Reasons and messages are the stock
// kubelet's. What a pod's spec alone decides (its OS, sysctls, AppArmor profiles,
// fields that the agent does not act on) is refused by node/podspec, which comes
// before.
//
//	admitters, err := admission.New(admission.Config{}, nodes, pods)
//	parts.Admitters = append(parts.Admitters, admitters...)
//
// The admitters, in order: "os", "node-affinity", "node-name", "node-ports",
// "taints", "features". A vendor puts its own between them by name, see node.Ordered.
//
// Besides yes and no there is "later": the pod stays Pending, says in its
// condition nodekit.dev/Admitted what it waits for, and is asked for again. It
// is the answer
//
//   - while only what the agent would register is known of the node, and that
//     does not fit,
//   - while a host port is held by a pod that is going,
//   - while a pod that comes first and wants the same host port is undecided.
//
// Rules:
//
//   - Static pods are exempt from taints, and may run while the API server is away.
//   - A pod that is deleted or has ended is nobody's business here: it is let
//     through, as its own end is under way.
//   - An untolerated NoExecute taint also ends a pod that runs when the agent
//     starts; what else would not be admitted any more runs on.
package admission
