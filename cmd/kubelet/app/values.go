package app

import (
	"errors"
	"fmt"
	"net"
	"sort"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"nodekit.dev/cmd/kubelet/config"
)

// A kind reads the text of one type of flag. Of a flag given twice, prev is
// what the first text gave, nil before; most kinds forget it. The result has
// the shape that the configuration's JSON has.
type kind func(prev any, text string) (any, error)

// kindOf finds how the flags of a type are read; the types and the forms are
// those of the stock kubelet.
func kindOf(flag, typ string) kind {
	switch typ {
	case "bool":
		return readBool
	case "int32":
		return readInt(32)
	case "int64":
		return readInt(64)
	case "Level":
		return readInt(32)
	case "duration":
		return readDuration
	case "quantity":
		return readQuantity
	case "ip":
		return readIP
	case "stringSlice":
		return readList
	case "mapStringBool":
		return readGates
	case "mapStringString":
		return mapKind(flag)
	case "colonSeparatedMultimapStringString":
		return readHeaders
	case "[]v1.Taint":
		return readTaints
	case "reserved-memory":
		return readReservedMemory
	case "pattern=N,...":
		return readVModule
	case "version":
		return readVersion
	default:
		return func(_ any, text string) (any, error) { return text, nil }
	}
}

// mapKind knows the two maps with a form of their own.
func mapKind(flag string) kind {
	switch flag {
	case "eviction-hard", "eviction-soft":
		return readMap("<", ",")
	case "cpu-manager-policy-options":
		return readMap("=", "")
	default:
		return readMap("=", ",")
	}
}

func readBool(_ any, text string) (any, error) {
	on, err := strconv.ParseBool(text)
	if err != nil {
		return nil, errors.New("want true or false")
	}
	return on, nil
}

func readInt(bits int) kind {
	return func(_ any, text string) (any, error) {
		n, err := strconv.ParseInt(text, 0, bits)
		if errors.Is(err, strconv.ErrRange) {
			return nil, fmt.Errorf("want a number of at most %d bits", bits)
		}
		if err != nil {
			return nil, errors.New("want a whole number")
		}
		return n, nil
	}
}

func readDuration(_ any, text string) (any, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil, errors.New(`want a duration such as "20s" or "1m30s"`)
	}
	return d.String(), nil
}

func readQuantity(_ any, text string) (any, error) {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return nil, errors.New(`want a quantity such as "10Mi"`)
	}
	return q.String(), nil
}

func readIP(_ any, text string) (any, error) {
	if text != "" && net.ParseIP(text) == nil {
		return nil, fmt.Errorf("%q is not a valid IP address", text)
	}
	return text, nil
}

// readList appends: a flag may be given again for more.
func readList(prev any, text string) (any, error) {
	list, _ := prev.([]any)
	if list == nil {
		list = []any{}
	}
	if text == "" {
		return list, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		list = append(list, strings.Trim(part, `"`))
	}
	return list, nil
}

func readGates(prev any, text string) (any, error) {
	set, err := config.ParseGates(text)
	if err != nil {
		return nil, err
	}
	gates := copied(prev)
	for name, on := range set {
		gates[name] = on
	}
	return gates, nil
}

// readMap reads pairs; an empty separator between them means one pair each time.
func readMap(equals, between string) kind {
	return func(prev any, text string) (any, error) {
		m := copied(prev)
		for part := range nonEmpty(text, between) {
			name, value, ok := strings.Cut(part, equals)
			if !ok {
				return nil, fmt.Errorf("malformed pair, expect string%sstring", equals)
			}
			m[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
		return m, nil
	}
}

func readHeaders(prev any, text string) (any, error) {
	m := copied(prev)
	for part := range nonEmpty(text, ",") {
		name, value, ok := strings.Cut(part, ":")
		if !ok {
			return nil, errors.New("malformed pair, expect string:string")
		}
		name = strings.TrimSpace(name)
		values, _ := m[name].([]any)
		m[name] = append(values, strings.TrimSpace(value))
	}
	return m, nil
}

func readVersion(_ any, text string) (any, error) {
	if text == "raw" {
		return text, nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return nil, errors.New(`want true, false or raw; the version that is told can not be changed`)
	}
	return strconv.FormatBool(on), nil
}

// copied is a map to add to: what is shared with the value before stays as it is.
func copied(prev any) map[string]any {
	m := map[string]any{}
	if before, ok := prev.(map[string]any); ok {
		for k, v := range before {
			m[k] = v
		}
	}
	return m
}

// nonEmpty yields the parts of a text that are not empty; without a separator
// the text is one part.
func nonEmpty(text, separator string) func(func(string) bool) {
	parts := []string{text}
	if separator != "" {
		parts = strings.Split(text, separator)
	}
	return func(yield func(string) bool) {
		for _, part := range parts {
			if part != "" && !yield(part) {
				return
			}
		}
	}
}

// shown is a value as --help and /flagz write it.
func shown(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []any:
		parts := make([]string, len(v))
		for i, one := range v {
			parts[i] = shown(one)
		}
		return strings.Join(parts, ",")
	case map[string]any:
		pairs := make([]string, 0, len(v))
		for name, value := range v {
			pairs = append(pairs, name+"="+shown(value))
		}
		sort.Strings(pairs)
		return strings.Join(pairs, ",")
	default:
		return fmt.Sprint(v)
	}
}
