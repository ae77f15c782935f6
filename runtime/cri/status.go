package cri

import (
	"cmp"
	"context"
	"slices"

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
	out := statusOf(resp)
	out.Name, out.Version, out.APIVersion = f.version.RuntimeName, f.version.RuntimeVersion, f.api
	return out, nil
}

// statusOf reads an answer. The reason and the message of the whole are those
// of the first condition that is not ready.
func statusOf(resp *runtimeapi.StatusResponse) runtime.Status {
	reported := resp.GetStatus().GetConditions()
	out := runtime.Status{
		Runtime:  condition(reported, runtimeapi.RuntimeReady),
		Network:  condition(reported, runtimeapi.NetworkReady),
		Handlers: handlersOf(resp),
		Features: runtimeFeatures(resp.GetFeatures()),
	}
	out.RuntimeReady, out.NetworkReady = out.Runtime.Ready, out.Network.Ready
	for _, c := range []runtime.Condition{out.Runtime, out.Network} {
		if !c.Ready {
			out.Reason, out.Message = c.Reason, c.Message
			break
		}
	}
	return out
}

// condition finds one of the two conditions that every runtime has to report.
func condition(reported []*runtimeapi.RuntimeCondition, name string) runtime.Condition {
	for _, c := range reported {
		if c.GetType() == name {
			return runtime.Condition{Known: true, Ready: c.GetStatus(), Reason: c.GetReason(), Message: c.GetMessage()}
		}
	}
	return runtime.Condition{Known: true, Reason: "NotReported", Message: "the runtime does not report " + name}
}

// handlersOf are sorted, so that an equal answer gives an equal status.
func handlersOf(resp *runtimeapi.StatusResponse) []runtime.Handler {
	var out []runtime.Handler
	for _, h := range resp.GetRuntimeHandlers() {
		out = append(out, runtime.Handler{
			Name:                    h.GetName(),
			RecursiveReadOnlyMounts: h.GetFeatures().GetRecursiveReadOnlyMounts(),
			UserNamespaces:          h.GetFeatures().GetUserNamespaces(),
		})
	}
	slices.SortFunc(out, func(a, b runtime.Handler) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func runtimeFeatures(f *runtimeapi.RuntimeFeatures) *runtime.Features {
	if f == nil {
		return nil
	}
	return &runtime.Features{
		SupplementalGroupsPolicy:  f.GetSupplementalGroupsPolicy(),
		UserNamespacesHostNetwork: f.GetUserNamespacesHostNetwork(),
		MountOptions:              f.GetMountOptions(),
	}
}

// UpdateRuntimeConfig tells the runtime the node's pod CIDR, or both of them
// with a comma between. It may be called again with what was told before.
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
