// Package environment fetches what the environment of a container names outside
// of its pod: ConfigMaps, Secrets, the addresses of services, and files in the
// pod's volumes. It is a node.Environment; what becomes of it all is decided in
// node/podspec, which is pure.
//
//	env, err := environment.New(objects, mounter)
//	found, err := env.Environment(ctx, podactor.EnvironmentRequest{Pod: pod, Container: "web"})
//
// Rules for callers:
//
//   - What does not exist is left out of the result: whether that matters is for
//     the one who builds the environment, who knows what is optional.
//   - What can not be asked for now is an error with the reason
//     "CreateContainerConfigError"; services are an exception for static pods,
//     which start without them.
//   - The result is shared with the getters' caches: read only.
package environment
