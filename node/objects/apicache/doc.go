// Package apicache answers from the API server: it is the [Cache] of what pods
// on this node refer to, with the getters and the rules of package objects.
//
//	cache, err := apicache.New(apicache.Config{NodeName: "n1"}, apicache.Clients{Core: core}, log)
//	go cache.Run(ctx)
//	secret, err := cache.Secret(ctx, pod.UID, pod.Namespace, "db") // refers to it from now on
//	for change := range cache.Changes() { ... }                    // an object of that pod changed
//	cache.Release(pod.UID)                                         // when nothing of the pod is left
//
// Rules:
//
//   - The first reference to an object reads it, and watches it half a second
//     later, by its name, as the Node authorizer allows; no change between the two
//     is missed. Release of the last reference ends that.
//   - Getters wait for the first answer, for [Config.Wait] at most. After that
//     they answer at once from memory, also while the API server is away.
//   - An immutable object is not watched once it was read.
package apicache
