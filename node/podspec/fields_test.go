package podspec

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestEveryFieldHasARule fails when the API grows a field that nobody has
// decided about.
func TestEveryFieldHasARule(t *testing.T) {
	counts := map[verdict]int{}
	eachRule("", reflect.TypeFor[corev1.PodSpec](), func(path string, r rule) {
		counts[r.verdict]++
		switch {
		case r.verdict == 0:
			t.Errorf("spec.%s has no rule in fields.go: act on it, refuse it, or say why it is harmless", path)
		case r.verdict != acted && r.why == "":
			t.Errorf("spec.%s: a verdict other than acted needs its why", path)
		}
	})
	if counts[acted] < 100 || counts[refused] < 5 || counts[harmless] < 10 {
		t.Errorf("verdicts %v: the walk is broken", counts)
	}
}

// TestEveryRefusedFieldIsRefused sets each refused field, one at a time, and
// sees that Check names it.
func TestEveryRefusedFieldIsRefused(t *testing.T) {
	b := newBuilder(t)
	eachRule("", reflect.TypeFor[corev1.PodSpec](), func(path string, r rule) {
		if r.verdict != refused {
			return
		}
		pod := simplePod()
		shown := setField(t, reflect.ValueOf(&pod.Spec).Elem(), path)
		err := b.Check(pod)
		if err == nil || !strings.Contains(err.Error(), "spec."+shown+": "+r.why) {
			t.Errorf("%s set: Check says %v", shown, err)
		}
	})
}

// eachRule visits the rule of each field below typ.
func eachRule(path string, typ reflect.Type, visit func(path string, r rule)) {
	if r, ok := ruleFor(path); ok {
		visit(path, r)
		return
	}
	switch typ.Kind() {
	case reflect.Pointer:
		eachRule(path, typ.Elem(), visit)
	case reflect.Slice:
		eachRule(path+"[]", typ.Elem(), visit)
	case reflect.Struct:
		for f := range typ.Fields() {
			eachRule(below(path, fieldName(f)), f.Type, visit)
		}
	default:
		visit(path, rule{})
	}
}

// setField makes the field at path differ from its zero value and returns the
// path with indices.
func setField(t *testing.T, v reflect.Value, path string) string {
	if path == "" {
		fill(v)
		return ""
	}
	name, rest, _ := strings.Cut(path, ".")
	plain, isList := strings.CutSuffix(name, "[]")
	field := fieldByName(v, plain)
	if !field.IsValid() {
		t.Fatalf("no field %s in %s", plain, v.Type())
	}
	for field.Kind() == reflect.Pointer && rest != "" {
		if field.IsNil() {
			field.Set(reflect.New(field.Type().Elem()))
		}
		field = field.Elem()
	}
	if isList {
		if field.Len() == 0 {
			field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		}
		plain, field = plain+"[0]", field.Index(0)
	}
	return below(plain, setField(t, field, rest))
}

func fieldByName(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		switch own := fieldName(v.Type().Field(i)); own {
		case name:
			return v.Field(i)
		case "":
			if found := fieldByName(v.Field(i), name); found.IsValid() {
				return found
			}
		}
	}
	return reflect.Value{}
}

func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
	}
}
