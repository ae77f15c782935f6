package cri

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

// Features is what the runtime says it can do beyond what every runtime can.
// A runtime that does not say can not.
type Features struct {
	SupplementalGroupsPolicy  bool
	UserNamespacesHostNetwork bool
	MountOptions              bool
	// Handlers are the runtime handlers by name; "" is the default one.
	Handlers map[string]HandlerFeatures
}

// HandlerFeatures is what one runtime handler can do.
type HandlerFeatures struct {
	RecursiveReadOnlyMounts bool
	UserNamespaces          bool
}

// Features tells what the runtime can do. It asks once for each connection.
func (c *Client) Features(ctx context.Context) (Features, error) {
	if known, ok := c.KnownFeatures(); ok {
		return known, nil
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	resp, err := c.runtime.Status(ctx, &runtimeapi.StatusRequest{})
	if err != nil {
		return Features{}, wrap("Status", c.cfg.Endpoint, err)
	}
	features := featuresOf(resp)
	c.conn.learnFeatures(features)
	return features, nil
}

// KnownFeatures is what Features last told of the present connection, without
// a call; false when nothing is known.
func (c *Client) KnownFeatures() (Features, bool) {
	if f, _ := c.conn.remembered(); f != nil && f.features != nil {
		return *f.features, true
	}
	return Features{}, false
}

func featuresOf(resp *runtimeapi.StatusResponse) Features {
	out := Features{
		SupplementalGroupsPolicy:  resp.GetFeatures().GetSupplementalGroupsPolicy(),
		UserNamespacesHostNetwork: resp.GetFeatures().GetUserNamespacesHostNetwork(),
		MountOptions:              resp.GetFeatures().GetMountOptions(),
		Handlers:                  map[string]HandlerFeatures{},
	}
	for _, h := range resp.GetRuntimeHandlers() {
		out.Handlers[h.GetName()] = HandlerFeatures{
			RecursiveReadOnlyMounts: h.GetFeatures().GetRecursiveReadOnlyMounts(),
			UserNamespaces:          h.GetFeatures().GetUserNamespaces(),
		}
	}
	return out
}

// wanted is what a request asks for that older runtimes leave out without a
// word, though it confines the container.
type wanted struct {
	handler      string
	groupsPolicy string
	user         *runtime.UserNamespace
	mounts       []runtime.Mount
}

// checkFeatures refuses what the runtime can not do of it. It asks only when
// there is such a field.
func (c *Client) checkFeatures(ctx context.Context, w wanted) error {
	if err := c.checkImageMounts(ctx, w.mounts); err != nil {
		return err
	}
	strict := w.groupsPolicy == runtimeapi.SupplementalGroupsPolicy_Strict.String()
	mount := recursivelyReadOnly(w.mounts)
	if !strict && mount == "" && w.user == nil {
		return nil
	}
	features, err := c.Features(ctx)
	if err != nil {
		return err
	}
	handler := features.Handlers[w.handler]
	switch {
	case strict && !features.SupplementalGroupsPolicy:
		return status.Error(codes.FailedPrecondition, "the runtime does not support the supplemental groups policy Strict")
	case w.user != nil && !handler.UserNamespaces:
		return status.Errorf(codes.FailedPrecondition, "the runtime handler %q does not support user namespaces", w.handler)
	case mount != "" && !handler.RecursiveReadOnlyMounts:
		return fmt.Errorf("mount %s: %w", mount, status.Errorf(codes.FailedPrecondition,
			"the runtime handler %q does not support recursively read-only mounts", w.handler))
	}
	return nil
}

// checkImageMounts refuses to mount an image with a containerd that does not
// know such mounts: it would say no more than that a path is missing.
func (c *Client) checkImageMounts(ctx context.Context, mounts []runtime.Mount) error {
	i := slices.IndexFunc(mounts, func(m runtime.Mount) bool { return m.Image.Ref != "" })
	if i < 0 {
		return nil
	}
	version, err := c.Version(ctx)
	if err != nil {
		return err
	}
	if version.RuntimeName == "containerd" && before(version.RuntimeVersion, 2, 1) {
		return fmt.Errorf("mount %s: %w", mounts[i].ContainerPath, status.Errorf(codes.FailedPrecondition,
			"containerd %s can not mount images: image volumes need containerd 2.1", version.RuntimeVersion))
	}
	return nil
}

// before says whether a version such as "v1.6.20" or "1.6.20~ds1" is older.
// What is no version is not.
func before(version string, major, minor int) bool {
	var haveMajor, haveMinor int
	if n, _ := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &haveMajor, &haveMinor); n != 2 {
		return false
	}
	return haveMajor < major || haveMajor == major && haveMinor < minor
}

// recursivelyReadOnly gives the first such mount.
func recursivelyReadOnly(mounts []runtime.Mount) string {
	for _, m := range mounts {
		if m.RecursiveReadOnly {
			return m.ContainerPath
		}
	}
	return ""
}
