package register

import (
	"encoding/json"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
)

// diff is the strategic merge patch of the status subresource that turns before
// into after: labels, annotations and status, never the spec. Changed is false
// when nothing but the heartbeats of conditions differs.
//
// It is written here because the library's takes its knowledge of lists from an
// OpenAPI parser of 30 packages. Of the lists of a Node's status only two are
// merged by the API server: conditions, by type, of which a patch holds what
// changed; and addresses, by type as well, which is wrong for two addresses of
// one type, so that they are always replaced whole.
func diff(before, after *corev1.Node) (patch []byte, changed bool, err error) {
	old, err := fields(before)
	if err != nil {
		return nil, false, err
	}
	now, err := fields(after)
	if err != nil {
		return nil, false, err
	}
	conditions, changed := conditionsPatch(before.Status.Conditions, after.Status.Conditions)
	out := map[string]any{}
	for _, part := range []string{"metadata", "status"} {
		if d := mapPatch(object(old[part]), object(now[part])); len(d) > 0 {
			out[part] = d
			changed = true
		}
	}
	status := object(out["status"])
	if list, ok := status["addresses"].([]any); ok && len(before.Status.Addresses) > 0 {
		status["addresses"] = append(list, map[string]any{"$patch": "replace"})
	}
	if len(conditions) > 0 {
		status["conditions"] = conditions
		out["status"] = status
	}
	patch, err = json.Marshal(out)
	return patch, changed, err
}

// fields are what a patch may change, as JSON has them. Conditions are left to
// conditionsPatch.
func fields(n *corev1.Node) (map[string]any, error) {
	status := n.Status.DeepCopy()
	status.Conditions = nil
	text, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"labels": n.Labels, "annotations": n.Annotations},
		"status":   status,
	})
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", n.Name, err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("node %s: %w", n.Name, err)
	}
	return out, nil
}

// object is the map that a value is; an empty one for anything else.
func object(value any) map[string]any {
	if m, ok := value.(map[string]any); ok {
		return m
	}
	return map[string]any{}
}

// mapPatch holds what differs: null for what is gone, maps by their keys, all
// else whole.
func mapPatch(old, now map[string]any) map[string]any {
	out := map[string]any{}
	for key := range old {
		if _, ok := now[key]; !ok {
			out[key] = nil
		}
	}
	for key, value := range now {
		was, had := old[key]
		inner, isMap := value.(map[string]any)
		if _, wasMap := was.(map[string]any); isMap && wasMap {
			if d := mapPatch(object(was), inner); len(d) > 0 {
				out[key] = d
			}
			continue
		}
		if value == nil && !had {
			continue
		}
		if !had || !reflect.DeepEqual(was, value) {
			out[key] = value
		}
	}
	return out
}

// conditionsPatch holds the conditions that differ, whole, and orders to delete
// those that are gone. Changed ignores heartbeats.
func conditionsPatch(old, now []corev1.NodeCondition) (out []any, changed bool) {
	for _, c := range now {
		i := indexOf(old, c.Type)
		if i >= 0 && sameCondition(old[i], c) && old[i].LastHeartbeatTime.Unix() == c.LastHeartbeatTime.Unix() {
			continue
		}
		out = append(out, c)
		changed = changed || i < 0 || !sameCondition(old[i], c)
	}
	for _, c := range old {
		if indexOf(now, c.Type) < 0 {
			out = append(out, map[string]any{"$patch": "delete", "type": string(c.Type)})
			changed = true
		}
	}
	return out, changed
}

// sameCondition ignores the heartbeat, and compares times as the API server
// keeps them: in whole seconds.
func sameCondition(a, b corev1.NodeCondition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message &&
		a.LastTransitionTime.Unix() == b.LastTransitionTime.Unix()
}
