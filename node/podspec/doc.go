// Package podspec turns a pod into what a runtime is told: the configuration of
// its sandbox and of each of its containers. It is pure: equal inputs give
// equal configurations, and nothing is read from the host but through the
// functions of [Config].
//
//	builder, err := podspec.New(cfg)
//	if err := builder.Check(pod); err != nil { ... } // reject the pod
//	sandbox, err := builder.Sandbox(podactor.SandboxSpecRequest{Pod: pod})
//	container, err := builder.Container(podactor.ContainerSpecRequest{Pod: pod, Container: "web", ImageRef: ref})
//
// Names, labels, annotations, log paths and cgroup parents are the stock
// kubelet's, so that a node can be switched between the two with pods running.
//
// Rules for callers:
//
//   - Check first. A pod that sets a field the agent does not act on is refused
//     with that field's path; it never runs with less confinement than it asked
//     for. The table in fields.go holds every field of a PodSpec.
//   - Specs have the API server's defaults applied.
//   - ContainerSpecRequest.ImageUser is the image's own user; empty means root.
//   - Whoever sets Config.ManageHosts writes Builder.HostsFile before each
//     container start.
//
// A Builder is safe for concurrent use and does not keep or change the pods
// that it is given.
package podspec
