package csinode

import (
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newCSINode goes with its Node.
func newCSINode(node *corev1.Node) *storagev1.CSINode {
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{
		Name:            node.Name,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
	}}
}

// merged are the drivers of a CSINode: those that were there, without those that
// went, as they are now.
func merged(old []storagev1.CSINodeDriver, drivers []Driver, gone map[string]bool) []storagev1.CSINodeDriver {
	out := []storagev1.CSINodeDriver{}
	for _, d := range old {
		known := slices.ContainsFunc(drivers, func(n Driver) bool { return n.Name == d.Name })
		if !known && !gone[d.Name] {
			out = append(out, d)
		}
	}
	for _, d := range drivers {
		out = append(out, entry(d))
	}
	slices.SortFunc(out, func(a, b storagev1.CSINodeDriver) int { return compare(a.Name, b.Name) })
	return out
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func entry(d Driver) storagev1.CSINodeDriver {
	out := storagev1.CSINodeDriver{Name: d.Name, NodeID: d.NodeID, TopologyKeys: slices.Sorted(maps.Keys(d.Topology))}
	if d.MaxVolumes > 0 {
		count := int32(min(d.MaxVolumes, math.MaxInt32)) //nolint:gosec // bounded
		out.Allocatable = &storagev1.VolumeNodeResources{Count: &count}
	}
	return out
}

// sameDrivers ignores the order, and whether an empty list is there.
func sameDrivers(a, b []storagev1.CSINodeDriver) bool {
	a = slices.Clone(a)
	slices.SortFunc(a, func(x, y storagev1.CSINodeDriver) int { return compare(x.Name, y.Name) })
	return equality.Semantic.DeepEqual(a, b)
}
