package cri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

// Status asks the runtime for its health. A condition that the runtime does
// not report is not ready.
func (c *Client) Status(ctx context.Context) (runtime.Status, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	f, err := c.conn.facts(ctx)
	if err != nil {
		return runtime.Status{}, wrap("Version", c.cfg.Endpoint, err)
	}
	resp, err := c.runtime.Status(ctx, &runtimeapi.StatusRequest{})
	if err != nil {
		return runtime.Status{}, wrap("Status", c.cfg.Endpoint, err)
	}
	c.conn.learnFeatures(featuresOf(resp))
	out := runtime.Status{Name: f.version.RuntimeName, Version: f.version.RuntimeVersion, APIVersion: f.api}
	out.RuntimeReady, out.NetworkReady, out.Reason, out.Message = conditions(resp.GetStatus().GetConditions())
	return out, nil
}

// conditions reads the two conditions that every runtime has to report. The
// reason and the message are of the first that is not ready.
func conditions(reported []*runtimeapi.RuntimeCondition) (runtimeReady, networkReady bool, reason, message string) {
	ready := func(name string) bool {
		why, text := "NotReported", "the runtime does not report "+name
		for _, cond := range reported {
			if cond.Type != name {
				continue
			}
			if cond.Status {
				return true
			}
			why, text = cond.Reason, cond.Message
		}
		if reason == "" && message == "" {
			reason, message = why, text
		}
		return false
	}
	runtimeReady = ready(runtimeapi.RuntimeReady)
	networkReady = ready(runtimeapi.NetworkReady)
	return runtimeReady, networkReady, reason, message
}

// UpdateRuntimeConfig tells the runtime the node's pod CIDR.
func (c *Client) UpdateRuntimeConfig(ctx context.Context, podCIDR string) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	_, err := c.runtime.UpdateRuntimeConfig(ctx, &runtimeapi.UpdateRuntimeConfigRequest{
		RuntimeConfig: &runtimeapi.RuntimeConfig{NetworkConfig: &runtimeapi.NetworkConfig{PodCidr: podCIDR}},
	})
	return wrap("UpdateRuntimeConfig", podCIDR, err)
}

// The cgroup drivers, as KubeletConfiguration spells them.
const (
	CgroupDriverSystemd  = "systemd"
	CgroupDriverCgroupfs = "cgroupfs"
)

// CgroupDriver asks the runtime for its cgroup driver: "systemd" or
// "cgroupfs". Runtimes before containerd 2.0 do not tell (IsUnimplemented).
func (c *Client) CgroupDriver(ctx context.Context) (string, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	resp, err := c.runtime.RuntimeConfig(ctx, &runtimeapi.RuntimeConfigRequest{})
	if err != nil {
		return "", wrap("RuntimeConfig", c.cfg.Endpoint, err)
	}
	if resp.GetLinux().GetCgroupDriver() == runtimeapi.CgroupDriver_CGROUPFS {
		return CgroupDriverCgroupfs, nil
	}
	return CgroupDriverSystemd, nil
}
