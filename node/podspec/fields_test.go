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
	unruled(t, "", reflect.TypeFor[corev1.PodSpec](), counts)
	for _, v := range []verdict{acted, refused, harmless} {
		if counts[v] == 0 {
			t.Errorf("no field has the verdict %d: the walk is broken", v)
		}
	}
}

func unruled(t *testing.T, path string, typ reflect.Type, counts map[verdict]int) {
	if r, ok := ruleFor(path); ok {
		counts[r.verdict]++
		if r.verdict != acted && r.why == "" {
			t.Errorf("%s: a verdict other than acted needs its why", path)
		}
		return
	}
	switch typ.Kind() {
	case reflect.Pointer:
		unruled(t, path, typ.Elem(), counts)
	case reflect.Slice:
		unruled(t, path+"[]", typ.Elem(), counts)
	case reflect.Struct:
		for f := range typ.Fields() {
			unruled(t, below(path, fieldName(f)), f.Type, counts)
		}
	default:
		t.Errorf("spec.%s has no rule in fields.go: act on it, refuse it, or say why it is harmless", path)
	}
}

// TestEveryRefusedFieldIsRefused sets each refused field, one at a time, and
// sees that Check names it.
func TestEveryRefusedFieldIsRefused(t *testing.T) {
	tried := 0
	b := newBuilder(t)
	eachRefused("", reflect.TypeFor[corev1.PodSpec](), func(path string) {
		tried++
		pod := simplePod()
		shown := setField(t, reflect.ValueOf(&pod.Spec).Elem(), path)
		err := b.Check(pod)
		if err == nil || !strings.Contains(err.Error(), "spec."+shown+": ") {
			t.Errorf("%s set: Check says %v", shown, err)
		}
	})
	if tried < 40 {
		t.Errorf("only %d refused fields found: the walk is broken", tried)
	}
}

func eachRefused(path string, typ reflect.Type, visit func(path string)) {
	if r, ok := ruleFor(path); ok {
		if r.verdict == refused {
			visit(path)
		}
		return
	}
	switch typ.Kind() {
	case reflect.Pointer:
		eachRefused(path, typ.Elem(), visit)
	case reflect.Slice:
		eachRefused(path+"[]", typ.Elem(), visit)
	case reflect.Struct:
		for f := range typ.Fields() {
			eachRefused(below(path, fieldName(f)), f.Type, visit)
		}
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
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.String:
		v.SetString("x")
	}
}
