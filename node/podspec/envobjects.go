package podspec

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/podactor"
)

// The words of these errors are the stock kubelet's: they are what users see
// and look for.

// addWhole adds all keys of whole ConfigMaps and Secrets; a later one replaces
// the value of an earlier one.
func addWhole(env *environment, sources []corev1.EnvFromSource, found podactor.EnvironmentResult) error {
	for _, from := range sources {
		if ref := from.ConfigMapRef; ref != nil {
			object := found.ConfigMaps[ref.Name]
			switch {
			case object != nil:
				addAll(env, from.Prefix, object.Data)
			case !value(ref.Optional):
				return fmt.Errorf("configmap %q not found", ref.Name)
			}
		}
		if ref := from.SecretRef; ref != nil {
			object := found.Secrets[ref.Name]
			switch {
			case object != nil:
				addAll(env, from.Prefix, object.Data)
			case !value(ref.Optional):
				return fmt.Errorf("secret %q not found", ref.Name)
			}
		}
	}
	return nil
}

// addAll adds in the order of names, so that equal inputs give equal outputs.
func addAll[V string | []byte](env *environment, prefix string, data map[string]V) {
	for _, key := range slices.Sorted(maps.Keys(data)) {
		env.set(prefix+key, string(data[key]))
	}
}

func configMapKey(req podactor.ContainerSpecRequest, ref *corev1.ConfigMapKeySelector) (text string, ok bool, err error) {
	optional := value(ref.Optional)
	object := req.Environment.ConfigMaps[ref.Name]
	if object == nil {
		return "", false, unless(optional, fmt.Errorf("configmap %q not found", ref.Name))
	}
	if text, ok = object.Data[ref.Key]; !ok {
		err = unless(optional, fmt.Errorf("couldn't find key %v in ConfigMap %v/%v", ref.Key, req.Pod.Namespace, ref.Name))
	}
	return text, ok, err
}

func secretKey(req podactor.ContainerSpecRequest, ref *corev1.SecretKeySelector) (text string, ok bool, err error) {
	optional := value(ref.Optional)
	object := req.Environment.Secrets[ref.Name]
	if object == nil {
		return "", false, unless(optional, fmt.Errorf("secret %q not found", ref.Name))
	}
	bytes, ok := object.Data[ref.Key]
	if !ok {
		err = unless(optional, fmt.Errorf("couldn't find key %v in Secret %v/%v", ref.Key, req.Pod.Namespace, ref.Name))
	}
	return string(bytes), ok, err
}

// fileKey takes a variable from a file; one that is empty there counts as not
// there, as with the stock kubelet.
func fileKey(req podactor.ContainerSpecRequest, ref *corev1.FileKeySelector) (text string, ok bool, err error) {
	optional := value(ref.Optional)
	content, found := req.Environment.Files[podactor.EnvFile{Volume: ref.VolumeName, Path: ref.Path}]
	if !found {
		return "", false, unless(optional, fmt.Errorf("couldn't parse env file: volume %q has no file %q", ref.VolumeName, ref.Path))
	}
	if text, err = envFileValue(content, ref.Key); err != nil {
		return "", false, fmt.Errorf("couldn't parse env file: %w", err)
	}
	if text == "" {
		return "", false, unless(optional, fmt.Errorf("environment variable key %q not found in file %q", ref.Key, ref.Path))
	}
	return text, true, nil
}

// unless drops the error about something that is optional.
func unless(optional bool, err error) error {
	if optional {
		return nil
	}
	return err
}
