// Package images makes container images present on the node: pulls in parallel
// up to a cap, one pull per image at a time, and back-off with the stock
// kubelet's reasons and messages. What may be collected again is a pure policy
// here too ([Collectable], [Choose]).
//
//	puller, err := images.New(images.DefaultConfig(), imageService)
//	ref, err := puller.Pull(ctx, images.Request{PodUID: uid, Image: "busybox", Policy: "IfNotPresent"})
//
// A Pull goes through these steps:
//
//	name ──▶ look ──▶ policy ──▶ back-off? ──▶ credentials ──▶ join or queue ──▶ pull
//	 │        │         │            │                             │              │
//	 InvalidImageName   │     ImagePullBackOff           oldest pod first   ErrImagePull
//	          ImageInspectError   ErrImageNeverPull                         RegistryUnavailable
//
// Rules for callers: cancel the context of a Pull that nobody waits for any
// more; a pull in flight goes on as long as one caller wants it. Errors answer
// Reason() and RetryAfter() (internal/reasoned); a cancelled call returns the
// context's error and counts as no failure.
package images
