package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	kjson "sigs.k8s.io/json"
)

// merge lays src over dst: maps by key, everything else replaced. A null takes
// away what lower layers said, as in the stock kubelet's drop-ins.
func merge(dst, src map[string]any) {
	for k, v := range src {
		if v == nil {
			delete(dst, k)
			continue
		}
		from, isMap := v.(map[string]any)
		if !isMap {
			dst[k] = v
			continue
		}
		into, wasMap := dst[k].(map[string]any)
		if !wasMap {
			into = map[string]any{}
			dst[k] = into
		}
		merge(into, from)
	}
}

// override lays flags over a complete configuration: a flag that sets a map or
// a list replaces it whole, but for feature gates, which add up.
func override(kc *KubeletConfiguration, layer map[string]any) error {
	clearMaps(reflect.ValueOf(kc).Elem(), layer, "")
	data, err := json.Marshal(layer)
	if err != nil {
		return err
	}
	return userError(json.Unmarshal(data, kc))
}

// clearMaps empties the maps that the layer sets: decoding would add to them.
func clearMaps(v reflect.Value, layer map[string]any, parent string) {
	for name, value := range layer {
		path := join(parent, name)
		field, ok := fieldByJSON(v, name)
		if !ok || path == "featureGates" {
			continue
		}
		below, isMap := value.(map[string]any)
		switch {
		case field.Kind() == reflect.Map || field.Kind() == reflect.Slice:
			field.SetZero()
		case isMap && field.Kind() == reflect.Struct:
			clearMaps(field, below, path)
		}
	}
}

func fieldByJSON(v reflect.Value, name string) (reflect.Value, bool) {
	for f := range fieldsOf(v.Type()) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return v.FieldByIndex(f.Index), true
		}
	}
	return reflect.Value{}, false
}

// decode turns maps, lists and scalars into a Go value. Names of fields are
// case-sensitive, as in the stock kubelet.
func decode(v, into any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return userError(kjson.UnmarshalCaseSensitivePreserveInts(data, into))
}

// userError says in users' words what a Go decoder says in its own. Most of
// these mistakes are found before, with file and line, by checkFields.
func userError(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	return fmt.Errorf("%s: want %s, found a %s", wrong.Field, wanted(wrong.Type), wrong.Value)
}
