package cluster_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"nodekit.dev/node/cluster"
	"nodekit.dev/node/wire"
)

// The parts of a cluster are those of any other agent; nobody is called before
// Run.
func Example() {
	cfg := wire.Default()
	cfg.NodeName = "edge-1"
	joins := cluster.Default()
	joins.API.REST = &rest.Config{Host: "https://192.0.2.1:6443"} // or Certs.Kubeconfig

	var parts *wire.Parts
	_, err := wire.New(cfg, cluster.Join(joins), wire.WithParts(func(p *wire.Parts) { parts = p }))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(parts.PodSource.Name(), parts.Registration.Node().Name, parts.ConfigMaps != nil)
	// Output: api edge-1 true
}
