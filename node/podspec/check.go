package podspec

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/reasoned"
)

// reasonUnsupported is ours: the stock kubelet acts on every field.
const reasonUnsupported = "UnsupportedField"

// Check refuses a pod that this node can not run as its spec alone has it, and
// trying again is in vain. What the stock kubelet refuses as well has its reason
// and its words ("AppArmor", "SysctlForbidden", "PodOSNotSupported",
// "SupplementalGroupsPolicyNotSupported"). Else the reason is
// "UnsupportedField", and the error names by path every field, or value of one,
// that the agent does not act on.
func (b *Builder) Check(pod *corev1.Pod) error {
	values := b.refusedValues(pod)
	for _, r := range values {
		if r.reason != "" {
			return reasoned.New(r.reason, errors.New(r.why)).Final()
		}
	}
	found := append(refusedFields("spec", "", reflect.ValueOf(&pod.Spec).Elem()), values...)
	if len(found) == 0 {
		return nil
	}
	errs := make([]error, len(found))
	for i, r := range found {
		errs[i] = fmt.Errorf("%s: %s", r.field, r.why)
	}
	return reasoned.New(reasonUnsupported, joined(errs)).Final()
}

// refusal is one thing that a pod may not ask for.
type refusal struct {
	field  string // such as "spec.containers[0].livenessProbe"
	why    string
	reason string // the stock reason, where why is the whole of the stock message
}

// joined is like errors.Join, on one line: it becomes a status message.
type joined []error

func (j joined) Error() string {
	texts := make([]string, len(j))
	for i, err := range j {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (j joined) Unwrap() []error { return j }

// refusedFields walks what a spec sets. shown is the path for the user, with
// indices; path is the one of the table. A field that has no rule is newer than
// the table, and refused.
func refusedFields(shown, path string, v reflect.Value) []refusal {
	if r, ok := ruleFor(path); ok {
		if r.verdict == refused {
			return []refusal{{field: shown, why: r.why}}
		}
		return nil
	}
	switch v = deref(v); {
	case v.Kind() == reflect.Struct:
		return refusedInStruct(shown, path, v)
	case v.Kind() == reflect.Slice:
		var out []refusal
		for i := range v.Len() {
			out = append(out, refusedFields(fmt.Sprintf("%s[%d]", shown, i), path+"[]", v.Index(i))...)
		}
		return out
	}
	return []refusal{{field: shown, why: "not known to this agent"}}
}

func refusedInStruct(shown, path string, v reflect.Value) []refusal {
	var out []refusal
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			continue
		}
		name := fieldName(v.Type().Field(i))
		out = append(out, refusedFields(below(shown, name), below(path, name), v.Field(i))...)
	}
	return out
}

// fieldName is the field's name in manifests; empty for a struct whose fields
// stand among those of the one around it.
func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func below(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}

func deref(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	return v
}
