package cluster

import (
	"context"
	"errors"
	"log/slog"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/credentials/nodecert"
	"nodekit.dev/node/apiserver"
	"nodekit.dev/node/wire"
)

// Connection reaches the API server, as this node.
type Connection struct {
	Certs *nodecert.Manager
	API   *apiserver.Client

	log *slog.Logger
}

// Connect makes the certificates and the connection that they are for. It reads
// the kubeconfig, and calls nobody. The addresses in the serving certificate are
// those of the Node. The configuration is complete.
func Connect(cfg Config, this *wire.ThisNode) (*Connection, error) {
	c := &Connection{log: cfg.log.With("part", "cluster")}
	addresses := func() []corev1.NodeAddress {
		if n := this.Node(); n != nil {
			return n.Status.Addresses
		}
		return nil
	}
	var err error
	if c.Certs, err = nodecert.New(cfg.Certs, addresses, cfg.log.With("part", "certificates")); err != nil {
		return nil, err
	}
	api, err := endpoint(cfg.API, c.Certs)
	if err != nil {
		return nil, err
	}
	told := api.Observer.Request
	api.Observer.Request = func(r apiserver.Request) {
		c.Certs.Answered(r.Code)
		if told != nil {
			told(r)
		}
	}
	if c.API, err = apiserver.New(api, cfg.log.With("part", "apiserver")); err != nil {
		return nil, err
	}
	c.Certs.OnRotate(c.API.CloseAll)
	return c, nil
}

// endpoint is where the API server is, if the configuration does not say.
func endpoint(api apiserver.Config, certs *nodecert.Manager) (apiserver.Config, error) {
	if api.REST != nil {
		return api, nil
	}
	found, err := certs.Endpoint()
	if err != nil {
		return api, err
	}
	if found.REST == nil {
		return api, errors.New("neither a kubeconfig nor a REST configuration says where the API server is")
	}
	api.REST = found.REST
	if found.Managed {
		api.Credentials = certs
	}
	return api, nil
}

// Runs is what must run.
func (c *Connection) Runs() []wire.Part {
	return []wire.Part{c.run("node-certificates", c.Certs.Run), c.run("api-connection", c.API.Run)}
}

// run keeps client-go's log lines of a part out of klog's.
func (c *Connection) run(name string, run func(context.Context) error) wire.Part {
	return wire.Part{Name: name, Run: func(ctx context.Context) error { return run(apiserver.Context(ctx, c.log)) }}
}
