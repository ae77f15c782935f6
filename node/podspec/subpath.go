package podspec

import (
	"fmt"
	"strings"

	"nodekit.dev/node/podactor"
)

// ExpandSubPath resolves the $(NAME) references of a subPathExpr with the
// container's environment. A name that is not there is an error: the stock
// kubelet refuses such a container, as a path with "$(" in it is never meant.
func (b *Builder) ExpandSubPath(req podactor.ContainerMountsRequest, expr string) (string, error) {
	c, err := findContainer(req.Pod, req.Container)
	if err != nil {
		return "", err
	}
	env, err := b.environment(podactor.ContainerSpecRequest{
		Pod: req.Pod, Container: req.Container, PodIPs: req.PodIPs, HostIPs: req.HostIPs, Environment: req.Environment,
	}, c)
	if err != nil {
		return "", err
	}
	var missing []string
	path := expand(expr, func(name string) (string, bool) {
		value, ok := env.lookup(name)
		if !ok {
			missing = append(missing, name)
		}
		return value, ok
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("missing value for %q", strings.Join(missing, ", "))
	}
	return path, nil
}

// RecursiveReadOnly says whether a runtime handler can make mounts recursively
// read-only.
func (b *Builder) RecursiveReadOnly(handler string) bool {
	return b.features(handler).RecursiveReadOnlyMounts
}
