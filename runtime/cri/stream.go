package cri

import (
	"context"
	"fmt"
	"net/url"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

// Exec gives the address at which the runtime's streaming server runs the
// command, once, for whoever connects there first.
func (c *Client) Exec(ctx context.Context, req runtime.ExecRequest) (*url.URL, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	resp, err := c.runtime.Exec(ctx, &runtimeapi.ExecRequest{
		ContainerId: req.ContainerID, Cmd: req.Command,
		Stdin: req.Stdin, Stdout: req.Stdout, Stderr: req.Stderr, Tty: req.TTY,
	})
	return streamURL("Exec", req.ContainerID, resp.GetUrl(), err)
}

// Attach gives the address at which the runtime's streaming server connects
// to the streams of a container that runs. The command of req does not matter.
func (c *Client) Attach(ctx context.Context, req runtime.ExecRequest) (*url.URL, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	resp, err := c.runtime.Attach(ctx, &runtimeapi.AttachRequest{
		ContainerId: req.ContainerID,
		Stdin:       req.Stdin, Stdout: req.Stdout, Stderr: req.Stderr, Tty: req.TTY,
	})
	return streamURL("Attach", req.ContainerID, resp.GetUrl(), err)
}

// PortForward gives the address at which the runtime's streaming server
// reaches the ports of a sandbox.
func (c *Client) PortForward(ctx context.Context, req runtime.PortForwardRequest) (*url.URL, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	resp, err := c.runtime.PortForward(ctx, &runtimeapi.PortForwardRequest{PodSandboxId: req.SandboxID, Port: req.Ports})
	return streamURL("PortForward", req.SandboxID, resp.GetUrl(), err)
}

// streamURL refuses what no client could connect to.
func streamURL(op, object, text string, err error) (*url.URL, error) {
	if err != nil {
		return nil, wrap(op, object, err)
	}
	u, err := url.Parse(text)
	if err == nil && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		err = fmt.Errorf("the runtime's streaming address %q is no http or https URL", text)
	}
	if err != nil {
		return nil, wrap(op, object, err)
	}
	return u, nil
}

// CheckpointContainer writes an archive of a container that runs. It may take
// as long as the request's timeout beyond the client's own.
func (c *Client) CheckpointContainer(ctx context.Context, req runtime.CheckpointRequest) error {
	ctx, cancel := c.withinPlus(ctx, req.Timeout)
	defer cancel()
	_, err := c.runtime.CheckpointContainer(ctx, &runtimeapi.CheckpointContainerRequest{
		ContainerId: req.ContainerID, Location: req.Location, Timeout: seconds(req.Timeout),
	})
	return wrap("CheckpointContainer", req.ContainerID, err)
}
