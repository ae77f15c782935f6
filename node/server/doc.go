// Package server is the agent's local HTTP: /healthz for whoever watches over
// the process, on a TCP port of loopback, and everything about the pods on a
// unix socket that only root can open. Vendors add routes ([Route]).
//
//	GET /healthz          "ok", from the moment the agent has started
//	GET /pods             all pods with their status, as a v1.PodList
//	GET /debug/pods       the pods with their place in the pod machine ([PodLine])
//	GET /debug/pods/UID   what the machine decided of late (nodectl replay)
//	GET /debug/events     the newest events, where [Events.Route] is added
//
// A use:
//
//	srv, err := server.New(server.Config{
//		HealthzAddress: "127.0.0.1:10248", Socket: "/var/lib/kubelet/nodekit.sock",
//	}, agent.Node(), log)
//	err = srv.Run(ctx)
//
// Rules for callers: start it after the agent has locked its root directory,
// since it takes over the socket that it finds there. A handler that takes
// long must end when its request's context does.
//
// The HTTPS endpoints of the stock kubelet come with the API server.
package server
