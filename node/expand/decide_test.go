package expand

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const gi = int64(1) << 30

func quantity(size int64) resource.Quantity { return *resource.NewQuantity(size, resource.BinarySI) }

func claimOf(size int64, status corev1.ClaimResourceStatus, change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "claim-uid", ResourceVersion: "1"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
	}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: quantity(2 * gi)}
	c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: quantity(size)}
	if status != "" {
		c.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: status}
	}
	for _, do := range change {
		do(c)
	}
	return c
}

func many(c *corev1.PersistentVolumeClaim) {
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
}

func optedOut(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{notRequired: ""} }

func condition(kind corev1.PersistentVolumeClaimConditionType) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Status.Conditions = append(c.Status.Conditions, corev1.PersistentVolumeClaimCondition{Type: kind, Status: corev1.ConditionTrue})
	}
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		claim         *corev1.PersistentVolumeClaim
		desired, here int64
		want          plan
	}{
		"nothing to do":                     {claimOf(gi, ""), gi, gi, leave},
		"the controllers are not done":      {claimOf(gi, ""), 2 * gi, gi, leave},
		"they failed":                       {claimOf(gi, corev1.PersistentVolumeClaimControllerResizeInfeasible), 2 * gi, gi, leave},
		"pending":                           {claimOf(gi, corev1.PersistentVolumeClaimNodeResizePending), 2 * gi, gi, grow},
		"pending, size not known":           {claimOf(gi, corev1.PersistentVolumeClaimNodeResizePending), 2 * gi, 0, grow},
		"an earlier agent was at it":        {claimOf(gi, corev1.PersistentVolumeClaimNodeResizeInProgress), 2 * gi, gi, grow},
		"an earlier agent did it":           {claimOf(gi, corev1.PersistentVolumeClaimNodeResizeInProgress), 2 * gi, 2 * gi, finish},
		"infeasible":                        {claimOf(gi, corev1.PersistentVolumeClaimNodeResizeInfeasible), 2 * gi, gi, leave},
		"old controllers":                   {claimOf(gi, "", condition(corev1.PersistentVolumeClaimFileSystemResizePending)), 2 * gi, gi, grow},
		"another node was quicker":          {claimOf(2*gi, "", many), 2 * gi, gi, growHere},
		"another node, and opted out":       {claimOf(2*gi, "", many, optedOut), 2 * gi, gi, leave},
		"another node, not shared":          {claimOf(2*gi, ""), 2 * gi, gi, leave},
		"shared, size not known":            {claimOf(2*gi, "", many), 2 * gi, 0, leave},
		"shared and pending":                {claimOf(gi, corev1.PersistentVolumeClaimNodeResizePending, many), 2 * gi, gi, grow},
		"pending although opted out":        {claimOf(gi, corev1.PersistentVolumeClaimNodeResizePending, many, optedOut), 2 * gi, gi, grow},
		"the claim was smaller all along":   {claimOf(gi, ""), 2 * gi, 2 * gi, leave},
		"shared, and as big as it shall be": {claimOf(2*gi, "", many), 2 * gi, 2 * gi, leave},
	} {
		if got := decide(tc.claim, tc.desired, tc.here); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
		if decide(tc.claim, tc.desired, tc.here) != leave && !mayGrow(tc.claim, tc.here) {
			t.Errorf("%s: the volume is not even looked at", name)
		}
	}
}
