package app

import (
	"encoding/json"
	"fmt"
	"strconv"

	"nodekit.dev/node/lifecycle"
)

// difference tells where two plans differ, one line per field: its path, what
// was recorded and what comes out now.
func difference(recorded, now lifecycle.Plan) ([]string, error) {
	before, err := flatten(recorded)
	if err != nil {
		return nil, err
	}
	after, err := flatten(now)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, path := range sorted(before) {
		was := before[path]
		is, still := after[path]
		switch {
		case !still:
			lines = append(lines, fmt.Sprintf("%s: recorded %s, now nothing", path, was))
		case is != was:
			lines = append(lines, fmt.Sprintf("%s: recorded %s, now %s", path, was, is))
		}
		delete(after, path)
	}
	for _, path := range sorted(after) {
		lines = append(lines, fmt.Sprintf("%s: recorded nothing, now %s", path, after[path]))
	}
	return lines, nil
}

// flatten is every value of a plan by its path, such as Do[0].Kind.
func flatten(plan lifecycle.Plan) (map[string]string, error) {
	data, err := json.Marshal(plan)
	if err != nil {
		return nil, err
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	leaves := map[string]string{}
	walk(v, "", leaves)
	return leaves, nil
}

func walk(v any, path string, leaves map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for key, below := range v {
			walk(below, join(path, key), leaves)
		}
	case []any:
		for i, below := range v {
			walk(below, path+"["+strconv.Itoa(i)+"]", leaves)
		}
	case nil:
	default:
		leaves[path] = fmt.Sprintf("%v", v)
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
