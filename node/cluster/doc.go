// Package cluster makes an agent a member of a cluster: it ties together by hand
// the parts that talk to an API server, for node/wire. An agent that stands
// alone does not import it, and so links none of them; with fx, node/clusterfx
// does the same.
//
//	cfg := cluster.Default()
//	cfg.Certs.Kubeconfig = "/etc/kubernetes/kubelet.conf"
//	agent, err := wire.New(wireConfig, cluster.Join(cfg))
//
// What a vendor has set in wire.ClusterParts is used, and its default neither
// made nor run; without any default there is not even a connection.
package cluster
