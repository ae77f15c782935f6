package plugins

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"nodekit.dev/internal/reasoned"
)

// defaultMode is what the API server fills in where a volume says nothing.
const defaultMode = 0o644

// files turns the keys of an object into files: all of them, or the items that
// the pod names. missing makes the error for an item that is not there.
type keyed struct {
	items    []corev1.KeyToPath
	mode     *int32
	user     func(item *int64) *int64 // of a file whose item asks for that one
	optional bool
	missing  func(key string) error
}

func (k keyed) files(data map[string][]byte) (payload, error) {
	out := payload{}
	if len(k.items) == 0 {
		for key, value := range data {
			out[key] = file{data: value, mode: modeOr(k.mode, defaultMode), user: k.user(nil)}
		}
		return out, nil
	}
	for _, item := range k.items {
		value, ok := data[item.Key]
		if !ok && k.optional {
			continue
		}
		if !ok {
			return nil, k.missing(item.Key)
		}
		out[item.Path] = file{data: value, mode: modeOr(item.Mode, modeOr(k.mode, defaultMode)), user: k.user(item.User)}
	}
	return out, nil
}

// user is who owns a file: whom its item asks for, else whom the volume does.
func (s Sources) user(volume *int64) func(item *int64) *int64 {
	return func(item *int64) *int64 {
		switch {
		case !s.FileUsers:
			return nil
		case item != nil:
			return item
		}
		return volume
	}
}

// configMapFiles reads a ConfigMap into files.
func (s Sources) configMapFiles(ctx context.Context, pod *corev1.Pod, name string, k keyed) (payload, error) {
	if s.ConfigMaps == nil {
		return nil, errNoConfigMaps
	}
	object, err := s.ConfigMaps.ConfigMap(ctx, pod.UID, pod.Namespace, name)
	if err != nil && (!k.optional || !isNotFound(err)) {
		return nil, err
	}
	data := map[string][]byte{}
	if err == nil {
		for key, value := range object.Data {
			data[key] = []byte(value)
		}
		for key, value := range object.BinaryData {
			data[key] = value
		}
	}
	k.missing = func(key string) error { return fmt.Errorf("configmap references non-existent config key: %s", key) }
	return k.files(data)
}

// secretFiles reads a Secret into files.
func (s Sources) secretFiles(ctx context.Context, pod *corev1.Pod, name string, k keyed) (payload, error) {
	if s.Secrets == nil {
		return nil, errNoSecrets
	}
	object, err := s.Secrets.Secret(ctx, pod.UID, pod.Namespace, name)
	if err != nil && (!k.optional || !isNotFound(err)) {
		return nil, err
	}
	var data map[string][]byte
	if err == nil {
		data = object.Data
	}
	k.missing = func(key string) error { return fmt.Errorf("references non-existent secret key: %s", key) }
	return k.files(data)
}

// isNotFound knows a missing object by what its error says of itself.
func isNotFound(err error) bool {
	var status apierrors.APIStatus
	return reasoned.NotFound(err) || errors.As(err, &status) && apierrors.IsNotFound(err)
}

func isTrue(b *bool) bool { return b != nil && *b }

func modeOr(mode *int32, otherwise int32) int32 {
	if mode == nil {
		return otherwise
	}
	return *mode
}
