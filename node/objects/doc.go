// Package objects is the one cache of what pods on this node refer to: Secrets,
// ConfigMaps, Services, ClusterTrustBundles, RuntimeClasses and the node itself.
// [Cache] answers from the API server, [Store] from what Go code put in it and
// [Folder] from a directory of manifests, for nodes without an API server. All
// have the same getters; callers declare the one or two that they need.
//
//	cache, err := objects.New(objects.Config{NodeName: "n1"}, objects.Clients{Core: core}, log)
//	go cache.Run(ctx)
//	secret, err := cache.Secret(ctx, pod.UID, pod.Namespace, "db") // refers to it from now on
//	for change := range cache.Changes() { ... }                    // an object of that pod changed
//	cache.Release(pod.UID)                                         // when nothing of the pod is left
//
// Rules:
//
//   - A getter that takes a UID refers to the object on behalf of that pod. The
//     first reference begins to watch the object, by its name, as the Node
//     authorizer allows; Release of the last one ends that.
//   - Getters wait for the first answer, for [Config.Wait] at most. After that
//     they answer at once from memory, also while the API server is away.
//   - An immutable object is not watched any more once it was read.
//   - A missing object is an error that answers NotFound() bool and reads as the
//     stock kubelet's (configmap "x" not found); one that answers
//     Unreachable() bool says that nobody could tell.
//   - Changes has one reader. A pod is named there after any object of it
//     changed, appeared or vanished, or could be read at last; changes of one
//     pod that were not taken yet are one.
//   - What is returned is shared: read only.
package objects
