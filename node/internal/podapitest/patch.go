package podapitest

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// mergeKeys are the lists of a pod's status that a strategic merge patch merges.
var mergeKeys = map[string]string{"conditions": "type", "hostIPs": "ip", "podIPs": "ip", "resourceClaimStatuses": "name"} //nolint:gochecknoglobals // a table

// applied is the status after a strategic merge patch.
func applied(status corev1.PodStatus, patch map[string]any) (out corev1.PodStatus, err error) {
	data, err := json.Marshal(status)
	if err != nil {
		return out, err
	}
	var has map[string]any
	if err := json.Unmarshal(data, &has); err != nil {
		return out, err
	}
	if err := mergeMap(has, patch); err != nil {
		return out, err
	}
	if data, err = json.Marshal(has); err != nil {
		return out, err
	}
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	return out, strict.Decode(&out)
}

func mergeMap(has, patch map[string]any) error {
	for name, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(has, name)
		case map[string]any:
			old, _ := has[name].(map[string]any)
			merged, err := mergeValue(old, value)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			has[name] = merged
		case []any:
			if mergeKeys[name] == "" {
				has[name] = value
				continue
			}
			old, _ := has[name].([]any)
			merged, err := mergeList(old, value, mergeKeys[name])
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			has[name] = merged
		default:
			has[name] = value
		}
	}
	return nil
}

func mergeValue(old, patch map[string]any) (map[string]any, error) {
	if patch["$patch"] == "replace" {
		delete(patch, "$patch")
		return patch, nil
	}
	if patch["$patch"] != nil {
		return nil, fmt.Errorf("directive %v", patch["$patch"])
	}
	if old == nil {
		old = map[string]any{}
	}
	return old, mergeMap(old, patch)
}

func mergeList(old, patch []any, key string) ([]any, error) {
	out := append([]any(nil), old...)
	for _, element := range patch {
		change, ok := element.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("element %v", element)
		}
		if change["$patch"] == "replace" && change[key] == nil {
			out = nil
			continue
		}
		at := -1
		for i, has := range out {
			if has.(map[string]any)[key] == change[key] {
				at = i
			}
		}
		switch {
		case change["$patch"] == "delete":
			if at >= 0 {
				out = append(out[:at], out[at+1:]...)
			}
		case change["$patch"] != nil:
			return nil, fmt.Errorf("directive %v", change["$patch"])
		case at < 0:
			fresh := map[string]any{}
			if err := mergeMap(fresh, change); err != nil {
				return nil, err
			}
			out = append(out, fresh)
		default:
			if err := mergeMap(out[at].(map[string]any), change); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
