package claims

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/internal/tasks"
	"nodekit.dev/volume"
)

const (
	// requestTime bounds one request.
	requestTime = 30 * time.Second
	// forbiddenPatience is how long the Node authorizer may take to hear that a
	// pod was bound to this node.
	forbiddenPatience = 2 * time.Second
	forbiddenPause    = 100 * time.Millisecond
)

// Claimed implements volume.Claims. It makes at least two requests, and blocks
// while the volume is not attached, for two minutes at most.
func (c *Claims) Claimed(ctx context.Context, pod *corev1.Pod, v corev1.Volume) (volume.Source, error) {
	claim, err := c.claim(ctx, pod, v)
	if err != nil {
		return volume.Source{}, err
	}
	pv, err := c.boundTo(ctx, claim)
	if err != nil {
		return volume.Source{}, err
	}
	if err := c.fits(ctx, pod, v, pv); err != nil {
		return volume.Source{}, err
	}
	s := volume.Source{
		Volume: v, PersistentVolume: pv, Claim: volume.Claim{Namespace: claim.Namespace, Name: claim.Name},
		ReadOnly:  v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly,
		ClaimSize: claim.Status.Capacity.Storage().Value(),
	}
	return c.attached(ctx, pod, s)
}

// claim reads the claim that an entry of the pod's spec names.
func (c *Claims) claim(ctx context.Context, pod *corev1.Pod, v corev1.Volume) (*corev1.PersistentVolumeClaim, error) {
	name := pod.Name + "-" + v.Name // as the controller names those of ephemeral volumes
	if v.PersistentVolumeClaim != nil {
		name = v.PersistentVolumeClaim.ClaimName
	}
	claim := &corev1.PersistentVolumeClaim{}
	if err := get(ctx, c.parts.Core.Get().Namespace(pod.Namespace).Resource("persistentvolumeclaims").Name(name), claim); err != nil {
		return nil, fmt.Errorf("error processing PVC %s/%s: failed to fetch PVC from API server: %w", pod.Namespace, name, err)
	}
	if v.Ephemeral != nil && !metav1.IsControlledBy(claim, pod) {
		return nil, fmt.Errorf("error processing PVC %s/%s: PVC %s/%s was not created for pod %s/%s (pod is not owner)",
			pod.Namespace, name, pod.Namespace, name, pod.Namespace, pod.Name)
	}
	return claim, bound(claim)
}

// bound says why a claim can not be used.
func bound(claim *corev1.PersistentVolumeClaim) error {
	name := claim.Namespace + "/" + claim.Name
	switch {
	case claim.DeletionTimestamp != nil:
		return fmt.Errorf("error processing PVC %s: can't start pod because PVC %s is being deleted", name, name)
	case claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "":
		return fmt.Errorf("error processing PVC %s: PVC is not bound", name)
	}
	return nil
}

// boundTo reads the volume that the claim is bound to.
func (c *Claims) boundTo(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	pv := &corev1.PersistentVolume{}
	name := claim.Spec.VolumeName
	if err := get(ctx, c.parts.Core.Get().Resource("persistentvolumes").Name(name), pv); err != nil {
		return nil, fmt.Errorf("error processing PVC %s/%s: failed to fetch PV %q from API server: %w", claim.Namespace, claim.Name, name, err)
	}
	if ref := pv.Spec.ClaimRef; ref == nil || ref.UID != claim.UID {
		return nil, fmt.Errorf("error processing PVC %s/%s: PV %q is not bound to this claim", claim.Namespace, claim.Name, name)
	}
	pv.ManagedFields = nil
	return pv, nil
}

// fits says why the volume can not be used by this pod on this node.
func (c *Claims) fits(ctx context.Context, pod *corev1.Pod, v corev1.Volume, pv *corev1.PersistentVolume) error {
	mounted, device := uses(pod, v.Name)
	block := volume.Source{PersistentVolume: pv}.Block()
	switch {
	case block && mounted:
		return reasoned.New("FailedMount", fmt.Errorf("volume %s has volumeMode Block, but is specified in volumeMounts", v.Name)).Final()
	case !block && device:
		return reasoned.New("FailedMount", fmt.Errorf("volume %s has volumeMode Filesystem, but is specified in volumeDevices", v.Name)).Final()
	}
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return nil
	}
	node, err := c.parts.Node(ctx)
	if err != nil {
		return fmt.Errorf("the node affinity of PV %q: %w", pv.Name, err)
	}
	required, err := nodeaffinity.NewNodeSelector(pv.Spec.NodeAffinity.Required)
	if err != nil {
		return fmt.Errorf("the node affinity of PV %q: %w", pv.Name, err)
	}
	if node == nil || !required.Match(node) {
		return fmt.Errorf("storage node affinity check failed for volume %q: no matching NodeSelectorTerms", pv.Name)
	}
	return nil
}

// uses says how the containers of a pod use a volume.
func uses(pod *corev1.Pod, name string) (mounted, device bool) {
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		mounted = mounted || slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == name })
		device = device || slices.ContainsFunc(container.VolumeDevices, func(d corev1.VolumeDevice) bool { return d.Name == name })
	}
	return mounted, device
}

// get reads one object. What is forbidden is asked for again for a moment: the
// authorizer hears of a pod's binding after the node does.
func get(ctx context.Context, request *rest.Request, into runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	for began := time.Now(); ; {
		err := request.Do(ctx).Into(into)
		if !apierrors.IsForbidden(err) || time.Since(began) > forbiddenPatience || tasks.Pause(ctx, forbiddenPause) != nil {
			return err
		}
	}
}
