package csi

import (
	"context"
	"fmt"
	"slices"

	storagev1 "k8s.io/api/storage/v1"

	"nodekit.dev/internal/reasoned"
)

// policy is what a CSIDriver object says, with the API's defaults.
type policy struct {
	known          bool // there is such an object
	modes          []storagev1.VolumeLifecycleMode
	fsGroup        storagev1.FSGroupPolicy
	podInfo        bool
	republish      bool
	seLinux        bool
	tokens         []storagev1.TokenRequest
	tokensInSecret bool
}

// policyOf reads the driver's object.
func (p *Plugin) policyOf(ctx context.Context, name string) (policy, error) {
	if p.parts.Drivers == nil {
		return policyFrom(nil), nil
	}
	object, err := p.parts.Drivers.CSIDriver(ctx, name)
	if err != nil && !reasoned.NotFound(err) {
		return policy{}, fmt.Errorf("CSIDriver %s: %w", name, err)
	}
	if err != nil {
		object = nil
	}
	return policyFrom(object), nil
}

func policyFrom(object *storagev1.CSIDriver) policy {
	out := policy{
		modes:   []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent},
		fsGroup: storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy,
	}
	if object == nil {
		return out
	}
	spec := object.Spec
	out.known = true
	if len(spec.VolumeLifecycleModes) > 0 {
		out.modes = spec.VolumeLifecycleModes
	}
	if spec.FSGroupPolicy != nil {
		out.fsGroup = *spec.FSGroupPolicy
	}
	out.podInfo, out.republish, out.seLinux = set(spec.PodInfoOnMount), set(spec.RequiresRepublish), set(spec.SELinuxMount)
	out.tokens, out.tokensInSecret = spec.TokenRequests, set(spec.ServiceAccountTokenInSecrets)
	return out
}

func set(b *bool) bool { return b != nil && *b }

// allows says why the driver does not take volumes of that mode.
func (p policy) allows(driver string, mode storagev1.VolumeLifecycleMode) error {
	switch {
	case slices.Contains(p.modes, mode):
		return nil
	case !p.known:
		return reasoned.New(reasonMount, fmt.Errorf("volume mode %q not supported by driver %s (no CSIDriver object)", mode, driver))
	}
	return reasoned.New(reasonMount, fmt.Errorf("volume mode %q not supported by driver %s (only supports %q)", mode, driver, p.modes))
}
