// Package server is the agent's local HTTP: /healthz for whoever watches over
// the process, on a TCP port of loopback, and everything about the pods on a
// unix socket that only root can open. Vendors add routes ([Route]).
//
//	GET /healthz          "ok", once the node has begun its work
//	GET /pods             all pods with their status, as a v1.PodList
//	GET /debug/pods       the pods with their place in the pod machine
//	GET /debug/pods/UID   what the machine decided of late (nodectl replay)
//
// The HTTPS endpoints of the stock kubelet come with the API server.
package server
