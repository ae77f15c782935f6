package config

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// misfit says why a value can not be had by a field of this type, in users'
// words; empty: it can. Plain yes, no, on and off are made booleans where one
// is wanted, as YAML 1.1 and so the stock kubelet has it.
func misfit(n *yaml.Node, t reflect.Type) string {
	if n.Tag == "!!null" {
		return ""
	}
	switch wanted := n.Kind; {
	case wanted == yaml.MappingNode && !takesMapping(t), wanted == yaml.SequenceNode && !takesList(t), wanted == yaml.ScalarNode && !takesScalar(t):
		return want(t, n)
	}
	if n.Kind != yaml.ScalarNode {
		return ""
	}
	return scalarMisfit(n, t)
}

// scalarMisfit looks at one value.
func scalarMisfit(n *yaml.Node, t reflect.Type) string {
	switch t {
	case reflect.TypeFor[metav1.Duration]():
		return durationMisfit(n, t, false)
	case reflect.TypeFor[logsapi.TimeOrMetaDuration]():
		return durationMisfit(n, t, true)
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[resource.QuantityValue]():
		if _, err := resource.ParseQuantity(n.Value); err != nil {
			return want(t, n)
		}
		return ""
	}
	if ownReading(t) {
		return "" // its own decoder has the word
	}
	switch t.Kind() {
	case reflect.Bool:
		asBool(n)
		return unless(n.Tag == "!!bool", t, n)
	case reflect.String:
		if n.Tag == "!!timestamp" {
			n.Tag = "!!str"
		}
		return unless(n.Tag == "!!str", t, n)
	case reflect.Float32, reflect.Float64:
		return unless(n.Tag == "!!int" || n.Tag == "!!float", t, n)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return integerMisfit(n, t)
	default:
		return ""
	}
}

func unless(fits bool, t reflect.Type, n *yaml.Node) string {
	if fits {
		return ""
	}
	return want(t, n)
}

func durationMisfit(n *yaml.Node, t reflect.Type, nanoseconds bool) string {
	if nanoseconds && n.Tag == "!!int" {
		return ""
	}
	_, err := time.ParseDuration(n.Value)
	return unless(n.Tag == "!!str" && err == nil, t, n)
}

func integerMisfit(n *yaml.Node, t reflect.Type) string {
	if n.Tag != "!!int" {
		return want(t, n)
	}
	var v int64
	if err := n.Decode(&v); err != nil || !fits(v, t) {
		low, high := limits(t)
		return fmt.Sprintf("want a number from %d to %d, found %s", low, high, n.Value)
	}
	return ""
}

func fits(v int64, t reflect.Type) bool {
	low, high := limits(t)
	return v >= low && (v < 0 || uint64(v) <= high)
}

func limits(t reflect.Type) (low int64, high uint64) {
	bits := t.Bits()
	switch t.Kind() {
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return 0, math.MaxUint64 >> (64 - bits)
	default:
		return math.MinInt64 >> (64 - bits), math.MaxUint64 >> (65 - bits)
	}
}

// asBool reads the words that YAML 1.1 has for true and false beside these.
func asBool(n *yaml.Node) {
	if n.Tag != "!!str" || n.Style != 0 {
		return
	}
	switch strings.ToLower(n.Value) {
	case "y", "yes", "on":
		n.Tag, n.Value = "!!bool", "true"
	case "n", "no", "off":
		n.Tag, n.Value = "!!bool", "false"
	}
}

func takesMapping(t reflect.Type) bool {
	return t.Kind() == reflect.Map || t.Kind() == reflect.Struct && !isLeafType(t) || anything(t) || ownReading(t) && !isKnownLeaf(t)
}

func takesList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice || t.Kind() == reflect.Array || anything(t) || ownReading(t) && !isKnownLeaf(t)
}

func takesScalar(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Array:
		return ownReading(t)
	case reflect.Struct:
		return isLeafType(t) || ownReading(t)
	default:
		return true
	}
}

func anything(t reflect.Type) bool { return t.Kind() == reflect.Interface }

// isKnownLeaf is true for the types whose form this package knows.
func isKnownLeaf(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[metav1.Duration](), reflect.TypeFor[logsapi.TimeOrMetaDuration](),
		reflect.TypeFor[resource.Quantity](), reflect.TypeFor[resource.QuantityValue](), reflect.TypeFor[metav1.Time]():
		return true
	}
	return false
}

// ownReading is true for types that read JSON or text in a way of their own.
func ownReading(t reflect.Type) bool {
	return decodesItself(t) || reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// want is the sentence "want a whole number, found the text "many"".
func want(t reflect.Type, n *yaml.Node) string {
	hint := ""
	if t.Kind() == reflect.String && n.Kind == yaml.ScalarNode {
		hint = "; put it in quotes"
	}
	return "want " + wanted(t) + ", found " + found(n) + hint
}

// wanted names what a type holds.
func wanted(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[metav1.Duration](), reflect.TypeFor[logsapi.TimeOrMetaDuration]():
		return `a duration such as "20s" or "1m30s"`
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[resource.QuantityValue]():
		return `a quantity such as "10Mi" or "500m"`
	case reflect.TypeFor[metav1.Time]():
		return `a time such as "2006-01-02T15:04:05Z"`
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "fields below it (key: value)"
	case reflect.Pointer:
		return wanted(t.Elem())
	default:
		return "a whole number"
	}
}

// found names what stands in the file.
func found(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "fields below it"
	case yaml.SequenceNode:
		return "a list"
	case yaml.DocumentNode, yaml.ScalarNode, yaml.AliasNode:
	}
	switch n.Tag {
	case "!!str":
		return "the text " + strconv.Quote(n.Value)
	case "!!bool":
		return n.Value
	}
	return "the number " + n.Value
}
