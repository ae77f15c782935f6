// Package kubeletapi holds the tests of the node's HTTPS API against a real
// containerd, with the client that kubectl is made of: logs, exec, attach and
// port-forward over SPDY and WebSocket.
package kubeletapi
