package volume

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
)

// Place is where one volume of a pod is, and from where it comes.
type Place struct {
	// Plugin has the volume, by its name.
	Plugin string
	// Path is the volume on the host.
	Path string
	// Dir and MetaDir are as in [MountRequest].
	Dir     string
	MetaDir string
	Source
}

// Kind is the plugin's name as metrics have it: that of a CSI volume ends with
// its driver's, "kubernetes.io/csi:DRIVER".
func (p Place) Kind() string { return withDriver(p.Plugin, p.Driver()) }

// PluginKind is the plugin's name as metrics have it, as [Place.Kind].
func (op Operation) PluginKind() string { return withDriver(op.Plugin, op.Driver) }

func withDriver(plugin, driver string) string {
	if driver == "" {
		return plugin
	}
	return plugin + ":" + driver
}

// Driver is the CSI driver of the volume; empty: it is none of CSI.
func (s Source) Driver() string {
	switch {
	case s.PersistentVolume != nil && s.PersistentVolume.Spec.CSI != nil:
		return s.PersistentVolume.Spec.CSI.Driver
	case s.PersistentVolume == nil && s.Volume.CSI != nil:
		return s.Volume.CSI.Driver
	}
	return ""
}

// Place says where a volume of the pod is mounted; false: it is not. It asks
// the plugin, which reads the host, and may hang as long as a mount there does.
func (m *Manager) Place(ctx context.Context, pod *corev1.Pod, volumeName string) (Place, bool, error) {
	s, plugin, err := m.known(pod, volumeName)
	if errors.Is(err, errNotMounted) {
		return Place{}, false, nil
	}
	if err != nil {
		return Place{}, false, err
	}
	req := m.mountedRequest(string(pod.UID), s, plugin)
	where, err := plugin.Mounted(ctx, req)
	if err != nil || !where.Mounted {
		return Place{}, false, err
	}
	return Place{Plugin: plugin.Name(), Path: where.HostPath, Dir: req.Dir, MetaDir: req.MetaDir, Source: s}, true, nil
}
