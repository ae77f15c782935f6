package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Invalid is one rule that the configuration breaks.
type Invalid struct {
	Field string // path in KubeletConfiguration, lower camel case
	// Text is the sentence: the field, its flag, the value and what is allowed,
	// in the stock kubelet's words.
	Text string
}

func (i Invalid) Error() string { return "invalid configuration: " + i.Text }

// InvalidError holds everything that is wrong, all at once.
type InvalidError []Invalid

func (e InvalidError) Error() string {
	texts := make([]string, len(e))
	for i, one := range e {
		texts[i] = one.Error()
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// Validate checks a complete configuration and returns an InvalidError with
// every rule that is broken, nil if none is. It reads nothing but kc.
func Validate(kc *KubeletConfiguration, features Features) error {
	c := checker{kc: kc, features: features}
	for _, group := range []func(*checker){
		(*checker).rates, (*checker).ports, (*checker).addresses, (*checker).server,
		(*checker).images, (*checker).node, (*checker).sources,
		(*checker).runtime, (*checker).logs, (*checker).logging, (*checker).pods, (*checker).sysctls,
		(*checker).cgroups, (*checker).memory, (*checker).allocatable, (*checker).reserved, (*checker).managers,
		(*checker).shutdown, (*checker).tracing,
	} {
		group(&c)
	}
	if len(c.found) == 0 {
		return nil
	}
	return c.found
}

type checker struct {
	kc       *KubeletConfiguration
	features Features
	found    InvalidError
}

// must notes a broken rule; text is a format for args.
func (c *checker) must(ok bool, field, text string, args ...any) {
	if !ok {
		c.found = append(c.found, Invalid{Field: field, Text: fmt.Sprintf(text, args...)})
	}
}

// notNegative is the rule of many numbers.
func notNegative[T int32 | int64](c *checker, field string, v T) {
	if v < 0 {
		c.must(false, field, "%s%s %v must not be a negative number", field, flagIn(field), v)
	}
}

// between is the rule of numbers with two ends.
func between[T int32 | int64](c *checker, field string, v, low, high T) {
	if v < low || v > high {
		c.must(false, field, "%s%s %v must be between %d and %d, inclusive", field, flagIn(field), v, low, high)
	}
}

// oneOf is the rule of words.
func (c *checker) oneOf(field, v string, allowed ...string) {
	if !slices.Contains(allowed, v) {
		c.must(false, field, "%s%s %q must be one of: %q", field, flagIn(field), v, allowed)
	}
}

// flagIn is the flag of a field as it stands in a sentence: " (--max-pods)".
func flagIn(field string) string {
	if flag := FlagOf(field); flag != "" {
		return " (--" + flag + ")"
	}
	return ""
}

// quotedList writes "a", "b" or "c".
func quotedList(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

// option is the rule of words with the other stock sentence.
func (c *checker) option(field, v string, allowed ...string) {
	if !slices.Contains(allowed, v) {
		c.must(false, field, "option %q specified for %s%s. Valid options are %s", v, field, flagIn(field), quotedList(allowed))
	}
}

func isASCII(s string) bool {
	for _, r := range s {
		if r > 127 {
			return false
		}
	}
	return true
}

// FieldsOf lists the fields that an error of Validate or Resolve is about.
func FieldsOf(err error) (fields []string) {
	var invalid InvalidError
	if errors.As(err, &invalid) {
		for _, one := range invalid {
			if !slices.Contains(fields, one.Field) {
				fields = append(fields, one.Field)
			}
		}
	}
	var several list
	if errors.As(err, &several) {
		for _, one := range several {
			var gate gateError
			if errors.As(one, &gate) {
				fields = append(fields, "featureGates."+gate.gate)
			}
		}
	}
	return fields
}
