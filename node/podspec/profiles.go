package podspec

import (
	"fmt"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/runtime"
)

// seccomp resolves a container's profile; p is nil where neither the container
// nor its pod names one.
func (b *Builder) seccomp(p *corev1.SeccompProfile) (*runtime.Profile, error) {
	if p == nil {
		if b.cfg.SeccompDefault {
			return &runtime.Profile{Type: runtime.ProfileRuntimeDefault}, nil
		}
		return &runtime.Profile{Type: runtime.ProfileUnconfined}, nil
	}
	switch p.Type {
	case corev1.SeccompProfileTypeRuntimeDefault:
		return &runtime.Profile{Type: runtime.ProfileRuntimeDefault}, nil
	case corev1.SeccompProfileTypeUnconfined:
		return &runtime.Profile{Type: runtime.ProfileUnconfined}, nil
	case corev1.SeccompProfileTypeLocalhost:
		name := value(p.LocalhostProfile)
		if !filepath.IsLocal(name) {
			return nil, fmt.Errorf("seccompProfile.localhostProfile %q: must be a path below the agent's seccomp directory", name)
		}
		path := filepath.Join(b.cfg.RootDir, "seccomp", name)
		return &runtime.Profile{Type: runtime.ProfileLocalhost, LocalhostRef: path}, nil
	}
	return nil, fmt.Errorf("seccompProfile.type %q: must be RuntimeDefault, Localhost or Unconfined", p.Type)
}

// appArmorAnnotation is the beta annotation before a container's name; it was
// read before the fields came and still is.
const appArmorAnnotation = corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix

// appArmor resolves a container's profile: its own field, its annotation, its
// pod's field. Nil leaves it to the runtime.
func appArmor(pod *corev1.Pod, c *corev1.Container) (*runtime.Profile, error) {
	if sc := c.SecurityContext; sc != nil && sc.AppArmorProfile != nil {
		return appArmorField(sc.AppArmorProfile)
	}
	if text, ok := pod.Annotations[appArmorAnnotation+c.Name]; ok {
		return appArmorText(text)
	}
	if sc := pod.Spec.SecurityContext; sc != nil && sc.AppArmorProfile != nil {
		return appArmorField(sc.AppArmorProfile)
	}
	return nil, nil
}

func appArmorField(p *corev1.AppArmorProfile) (*runtime.Profile, error) {
	switch p.Type {
	case corev1.AppArmorProfileTypeRuntimeDefault:
		return &runtime.Profile{Type: runtime.ProfileRuntimeDefault}, nil
	case corev1.AppArmorProfileTypeUnconfined:
		return &runtime.Profile{Type: runtime.ProfileUnconfined}, nil
	case corev1.AppArmorProfileTypeLocalhost:
		return appArmorLocalhost(value(p.LocalhostProfile))
	}
	return nil, fmt.Errorf("appArmorProfile.type %q: must be RuntimeDefault, Localhost or Unconfined", p.Type)
}

func appArmorText(text string) (*runtime.Profile, error) {
	switch text {
	case "", corev1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return &runtime.Profile{Type: runtime.ProfileRuntimeDefault}, nil
	case corev1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return &runtime.Profile{Type: runtime.ProfileUnconfined}, nil
	}
	name, ok := strings.CutPrefix(text, corev1.DeprecatedAppArmorBetaProfileNamePrefix)
	if !ok {
		return nil, fmt.Errorf("AppArmor annotation %q: must be runtime/default, unconfined or localhost/NAME", text)
	}
	return appArmorLocalhost(name)
}

func appArmorLocalhost(name string) (*runtime.Profile, error) {
	name = strings.TrimSpace(name)
	if name == "" {
		return nil, fmt.Errorf("invalid empty AppArmor profile name: a Localhost profile must be named")
	}
	return &runtime.Profile{Type: runtime.ProfileLocalhost, LocalhostRef: name}, nil
}
