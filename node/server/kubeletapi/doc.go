// Package kubeletapi has the routes of the stock kubelet's HTTPS API, for
// kubectl logs, exec, attach, cp, port-forward and debug, and for whoever looks
// at a node:
//
//	/pods /runningpods/ /allocatedPods              pods, as the node has them
//	/containerLogs/NAMESPACE/POD/CONTAINER          logs
//	/exec/... /attach/... /portForward/... /run/... streams and commands
//	/checkpoint/NAMESPACE/POD/CONTAINER             an archive of a container
//	/logs/                                          logs of the machine
//	/healthz /configz /statusz /flagz               the agent itself
//	/debug/pprof/ /debug/flags/v                    for who debugs it
//
// A use:
//
//	ends := kubeletapi.NewEnds() // a node.StatusSink, see Parts.Ends
//	routes, err := kubeletapi.Routes(kubeletapi.Default(), kubeletapi.Parts{
//		Pods: agentNode, Runtime: criClient, Ends: ends, ...
//	})
//	api, err := server.NewAPI(server.APIConfig{...}, server.APIParts{Routes: server.Merge(routes, vendors), ...})
//
// Routes that stand for a part that is nil are left out. What a request names
// (namespace, pod, container) is only ever compared with what the node has: no
// path on the host is made of it.
//
// Rules for callers: Ends has to be among the node's status sinks, or clients
// that follow a log are not told that its container ended.
package kubeletapi
