// Package objects holds what pods on this node refer to, Secrets and ConfigMaps
// before all: [Store] answers from what Go code put in it and [Folder] from a
// directory of manifests, for nodes and pods without an API server;
// objects/apicache answers from the API server. All have the same getters;
// callers declare the one or two that they need.
//
//	folder, err := objects.NewFolder("/etc/edge/objects", log)
//	go folder.Run(ctx)
//	secret, err := folder.Secret(ctx, pod.UID, pod.Namespace, "db") // refers to it from now on
//	for change := range folder.Changes() { ... }                    // an object of that pod changed
//	folder.Release(pod.UID)                                         // when nothing of the pod is left
//
// Rules:
//
//   - A getter that takes a UID refers to the object on behalf of that pod, until
//     Release.
//   - A missing object is an error that answers NotFound() bool and reads as the
//     stock kubelet's (configmap "x" not found); one that answers
//     Unreachable() bool says that nobody could tell.
//   - Changes has one reader. A pod is named there after any object of it
//     changed, appeared or vanished, or could be read at last; changes of one
//     pod that were not taken yet are one.
//   - What is returned is shared: read only.
package objects
