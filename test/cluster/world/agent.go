package world

import (
	"context"
	"maps"

	"nodekit.dev/test/integration/testbed"
)

// KubeletPort is where agents serve their HTTPS API.
const KubeletPort = 10250

// AgentOptions says how to start an agent on a node. The zero value is an agent
// with a certificate of its own that needs no bootstrap.
type AgentOptions struct {
	// Kubeconfig is the file that says how to reach the API server; default:
	// one with a certificate for this node.
	Kubeconfig string
	// BootstrapKubeconfig is the file to join with when there is no Kubeconfig.
	BootstrapKubeconfig string
	// Program is the agent's binary; default: as of testbed.AgentOptions.
	Program string
	// Manifests is the folder of static pods; empty: none.
	Manifests string
	// Config holds fields of KubeletConfiguration over those that the world sets.
	Config map[string]any
	// Flags are added to those that the world sets.
	Flags []string
}

// StartAgent starts an agent on a node and returns when it is healthy, which
// does not mean that its node is Ready. What it is, it takes from
// NODEKIT_AGENT; default: cmd/kubelet of this tree.
func (w *World) StartAgent(ctx context.Context, n *Node, o AgentOptions) error {
	if o.Kubeconfig == "" {
		path, err := w.Plane.NodeKubeconfig(n.Name)
		if err != nil {
			return err
		}
		o.Kubeconfig = path
	}
	flags := []string{"--kubeconfig=" + o.Kubeconfig}
	if o.BootstrapKubeconfig != "" {
		flags = append(flags, "--bootstrap-kubeconfig="+o.BootstrapKubeconfig)
	}
	config := w.AgentConfig(n)
	maps.Copy(config, o.Config)
	agent, err := testbed.StartAgent(ctx, n.Bed, testbed.AgentOptions{
		Program:   o.Program,
		Manifests: o.Manifests,
		NodeName:  n.Name,
		Config:    config,
		Flags:     append(flags, o.Flags...),
	})
	if err != nil {
		return err
	}
	n.Agent = agent
	return nil
}

// AgentConfig are the fields of KubeletConfiguration that join an agent to this
// world, over those of its bed: what kubeadm sets.
func (w *World) AgentConfig(n *Node) map[string]any {
	type object = map[string]any
	return object{
		"address": n.Bed.NodeIP.String(), // nodes may share one namespace
		"port":    KubeletPort,
		"authentication": object{
			"anonymous": object{"enabled": false},
			"webhook":   object{"enabled": true},
			"x509":      object{"clientCAFile": w.Plane.CAFile()},
		},
		"authorization":      object{"mode": "Webhook"},
		"clusterDNS":         []string{"10.96.0.10"},
		"clusterDomain":      "cluster.local",
		"failSwapOn":         false,
		"rotateCertificates": true,
	}
}
