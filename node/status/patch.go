package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fields are the fields of a status, each as JSON.
type fields map[string]json.RawMessage

// The directives of a strategic merge patch.
const (
	directive     = "$patch"
	directReplace = `"replace"`
	directDelete  = `"delete"`
)

// statusChanges is the part of a strategic merge patch that takes one status to
// the other; nil: they are equal. Conditions are patched one by one, so that
// those of others are never touched; every other field that differs is replaced
// whole.
//
// It is made by hand because what makes such patches in apimachinery drags the
// OpenAPI machinery along.
func statusChanges(from, to *corev1.PodStatus) (json.RawMessage, error) {
	old, err := fieldsOf(from)
	if err != nil {
		return nil, err
	}
	next, err := fieldsOf(to)
	if err != nil {
		return nil, err
	}
	delete(old, "conditions")
	delete(next, "conditions")
	changes := fields{}
	for name, value := range next {
		switch has := old[name]; {
		case bytes.Equal(has, value):
		case has == nil:
			changes[name] = value // nothing to merge with
		default:
			changes[name] = replacing(name, value)
		}
	}
	for name := range old {
		if _, still := next[name]; !still {
			changes[name] = json.RawMessage("null")
		}
	}
	conditions, err := conditionsPatch(from.Conditions, to.Conditions)
	if err != nil {
		return nil, err
	}
	if conditions != nil {
		changes["conditions"] = conditions
	}
	if len(changes) == 0 {
		return nil, nil
	}
	return json.Marshal(changes)
}

// patchOf puts the changes into a patch of the pod of that UID. With a version,
// it holds only for the copy of that version: for what must not run over news
// from others.
func patchOf(uid types.UID, version string, changes json.RawMessage) ([]byte, error) {
	meta := map[string]string{"uid": string(uid)}
	if version != "" {
		meta["resourceVersion"] = version
	}
	return json.Marshal(map[string]any{"metadata": meta, "status": changes})
}

func fieldsOf(value any) (fields, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("as JSON: %w", err)
	}
	var all fields
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("as JSON: %w", err)
	}
	return all, nil
}

// replacing is the value with the directive that keeps the server from merging
// it with what it has, where it would.
func replacing(name string, value json.RawMessage) json.RawMessage {
	mark := []byte(`{"` + directive + `":` + directReplace)
	switch {
	case name == "hostIPs" || name == "podIPs": // [a] to [{mark}, a]
		return slices.Concat([]byte("["), mark, []byte("},"), value[1:])
	case bytes.Equal(value, []byte("{}")):
		return append(mark, '}')
	case bytes.HasPrefix(value, []byte("{")): // {a} to {mark, a}
		return slices.Concat(mark, []byte(","), value[1:])
	}
	return value
}

// conditionsPatch holds the conditions that differ, and null for their fields
// that are gone; nil: none differs.
func conditionsPatch(from, to []corev1.PodCondition) (json.RawMessage, error) {
	var changes []fields
	for _, c := range to {
		next, err := fieldsOf(c)
		if err != nil {
			return nil, err
		}
		old := fields{}
		if has := find(from, c.Type); has != nil {
			if old, err = fieldsOf(*has); err != nil {
				return nil, err
			}
		}
		if same(old, next) {
			continue
		}
		for name := range old {
			if _, still := next[name]; !still {
				next[name] = json.RawMessage("null")
			}
		}
		changes = append(changes, next)
	}
	for _, c := range from {
		if find(to, c.Type) != nil {
			continue
		}
		kind, err := json.Marshal(c.Type)
		if err != nil {
			return nil, fmt.Errorf("as JSON: %w", err)
		}
		changes = append(changes, fields{"type": kind, directive: json.RawMessage(directDelete)})
	}
	if len(changes) == 0 {
		return nil, nil
	}
	return json.Marshal(changes)
}

func same(a, b fields) bool {
	if len(a) != len(b) {
		return false
	}
	for name, value := range a {
		if !bytes.Equal(value, b[name]) {
			return false
		}
	}
	return true
}
