// Package resources holds the pure arithmetic of a node's resources: the QoS
// class of a pod, what a pod asks for in total (init containers, sidecars and
// overhead counted as the scheduler counts them), the kernel values that follow
// from it (shares, quota, memory and hugepage limits, oom_score_adj), and the
// names of pod cgroups under both cgroup drivers.
//
// Nothing here reads the host or keeps state; every function may be called
// concurrently. The numbers are the stock kubelet's, so that a node can be
// switched between the two while its pods run.
//
//	limits := resources.PodLimits(pod, resources.DefaultCPUQuota())
//	parent := resources.CgroupNames{Driver: resources.Cgroupfs}.Parent(pod)
//
// Rules for callers: specs are expected with the API server's defaults applied,
// but a request that is missing beside a limit is taken from the limit here too.
// Pod-level resources (spec.resources) are not counted yet; node/podspec
// refuses pods that set them.
//
// Package resources/cgroups writes these values to the host.
package resources
