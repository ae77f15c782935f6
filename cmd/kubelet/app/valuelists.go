package app

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The flags whose values are lists of more than words.

// readTaints reads KEY=VALUE:EFFECT and KEY:EFFECT. What a taint may hold is
// for config.Validate.
func readTaints(_ any, text string) (any, error) {
	taints, seen := []any{}, map[string]bool{}
	for part := range nonEmpty(text, ",") {
		label, effect, ok := strings.Cut(part, ":")
		if !ok {
			return nil, fmt.Errorf("invalid taint spec: %v", part)
		}
		key, value, _ := strings.Cut(label, "=")
		switch corev1.TaintEffect(effect) {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			return nil, fmt.Errorf("invalid taint effect: %v, unsupported taint effect", effect)
		}
		if seen[key+":"+effect] {
			return nil, fmt.Errorf("duplicated taints with the same key and effect: %v", part)
		}
		seen[key+":"+effect] = true
		taint := map[string]any{"key": key, "effect": effect}
		if value != "" {
			taint["value"] = value
		}
		taints = append(taints, taint)
	}
	return taints, nil
}

func readReservedMemory(prev any, text string) (any, error) {
	list, _ := prev.([]any)
	for part := range nonEmpty(text, ";") {
		node, types, ok := strings.Cut(part, ":")
		if !ok {
			return nil, fmt.Errorf("the reserved memory has incorrect format, expected numaNodeID:type=quantity[,type=quantity...], got %s", part)
		}
		id, err := strconv.ParseInt(node, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("failed to convert the NUMA node ID, expected integer, got %s", node)
		}
		limits, err := reservedLimits(types)
		if err != nil {
			return nil, err
		}
		list = append(list, map[string]any{"numaNode": id, "limits": limits})
	}
	return list, nil
}

func reservedLimits(text string) (map[string]any, error) {
	limits := map[string]any{}
	for part := range strings.SplitSeq(text, ",") {
		name, amount, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("the reserved limit has incorrect value, expected type=quantity, got %s", part)
		}
		if name != string(corev1.ResourceMemory) && !strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) {
			return nil, fmt.Errorf("memory type conversion error, unknown type: %q", name)
		}
		q, err := resource.ParseQuantity(amount)
		if err != nil {
			return nil, fmt.Errorf("failed to parse the quantity: %s", amount)
		}
		limits[name] = q.String()
	}
	return limits, nil
}

func readVModule(_ any, text string) (any, error) {
	items := []any{}
	for part := range nonEmpty(text, ",") {
		pattern, level, ok := strings.Cut(part, "=")
		n, err := strconv.ParseUint(level, 10, 31)
		if !ok || pattern == "" || err != nil {
			return nil, fmt.Errorf("%q does not have the pattern=N format", part)
		}
		items = append(items, map[string]any{"filePattern": pattern, "verbosity": n})
	}
	return items, nil
}
