package clusterfx_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"nodekit.dev/node/cluster"
	"nodekit.dev/node/clusterfx"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/wire"
	"nodekit.dev/volume/plugins"
)

// vault has the secrets of pods, instead of the API server.
type vault struct{}

func (vault) Secret(context.Context, types.UID, string, string) (*corev1.Secret, error) {
	return &corev1.Secret{}, nil
}

// A member of a cluster whose secrets come from elsewhere.
func Example() {
	cfg := wire.Default()
	cfg.NodeName = "edge-1"
	joins := cluster.Default()
	joins.API.REST = &rest.Config{Host: "https://192.0.2.1:6443"} // or Certs.Kubeconfig

	agent, err := nodefx.New(
		nodefx.Config(cfg),
		clusterfx.Join(joins),
		nodefx.Replace[plugins.Secrets](func() vault { return vault{} }),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(agent.Groups().Sources)
	// Output: [api]
}
