package register

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"nodekit.dev/node"
	"nodekit.dev/resources"
)

// Contributor adds resources to what the machine has, such as devices.
type Contributor interface {
	// Contribute must not block; it is called at each status.
	Contribute(ctx context.Context) (Contribution, error)
}

// Contribution is what one contributor has.
type Contribution struct {
	// Capacity is what there is of each resource. Allocatable is what pods may
	// have of it; a resource that is not in it is reckoned as the machine's own
	// are: its capacity less what is reserved.
	Capacity    corev1.ResourceList
	Allocatable corev1.ResourceList
	// Gone are resources that there were before: they are told as 0, so that the
	// scheduler knows them as the node's, and not as another's.
	Gone []corev1.ResourceName
}

// capacitySetter sets capacity and allocatable from the machine and the contributors.
type capacitySetter struct {
	cfg          Config
	parts        Parts
	contributors []node.Ordered[Contributor]
}

// setCapacity keeps what others told of (extended resources that were set from
// outside).
func (s *capacitySetter) setCapacity(ctx context.Context, n *corev1.Node) error {
	if n.Status.Capacity == nil {
		n.Status.Capacity = corev1.ResourceList{}
	}
	m, err := s.parts.Machine()
	if err != nil {
		return err
	}
	if !s.cfg.LocalStorage {
		m.Storage = 0
	}
	maps.Copy(n.Status.Capacity, resources.Capacity(m, s.cfg.Pods))
	_, err = s.contribute(ctx, n.Status.Capacity)
	return err
}

// contribute adds what the contributors have to a capacity and returns what
// they say that pods may have.
func (s *capacitySetter) contribute(ctx context.Context, capacity corev1.ResourceList) (corev1.ResourceList, error) {
	allocatable := corev1.ResourceList{}
	var errs []error
	for _, c := range s.contributors {
		has, err := c.Value.Contribute(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.Name, err))
			continue
		}
		maps.Copy(capacity, has.Capacity)
		for _, name := range has.Gone {
			capacity[name] = *resource.NewQuantity(0, resource.DecimalSI)
		}
		maps.Copy(allocatable, has.Allocatable)
	}
	return allocatable, errors.Join(errs...)
}

// setAllocatable drops what is not in the capacity any more.
func (s *capacitySetter) setAllocatable(ctx context.Context, n *corev1.Node) error {
	capacity := n.Status.Capacity
	allocatable := resources.Allocatable(capacity, s.cfg.Reserved.Total(capacity))
	own, err := s.contribute(ctx, maps.Clone(capacity))
	maps.Copy(allocatable, own)
	n.Status.Allocatable = allocatable
	return err
}
