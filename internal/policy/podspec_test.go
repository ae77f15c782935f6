package policy

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const podSpecFile = "testdata/podspec.txt"

// TestPodSpecFields holds every field of a pod's spec that the API has, however
// deep: a rule of node/podspec may stand for all fields below one, and a new
// field there must not be taken for decided.
func TestPodSpecFields(t *testing.T) {
	var now []string
	podFields("spec", reflect.TypeFor[corev1.PodSpec](), func(path string) { now = append(now, path) })
	slices.Sort(now)
	if len(now) < 700 {
		t.Fatalf("the walk found %d fields only", len(now))
	}
	if *update {
		if err := os.WriteFile(podSpecFile, []byte(strings.Join(now, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(podSpecFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range fieldChanges(strings.Fields(string(text)), now) {
		t.Error(problem)
	}
}

// fieldChanges says what came and went.
func fieldChanges(known, now []string) (problems []string) {
	for _, path := range now {
		if !slices.Contains(known, path) {
			problems = append(problems, fmt.Sprintf("%s is new in the API: act on it or refuse it (node/podspec/fields.go), and then: go test ./internal/policy -run TestPodSpecFields -update", path))
		}
	}
	for _, path := range known {
		if !slices.Contains(now, path) {
			problems = append(problems, fmt.Sprintf("%s is gone from the API: take it out of node/podspec/fields.go, and then: go test ./internal/policy -run TestPodSpecFields -update", path))
		}
	}
	return problems
}

// TestFieldChanges: the list would not let a field come or go.
func TestFieldChanges(t *testing.T) {
	got := fieldChanges([]string{"spec.old", "spec.both"}, []string{"spec.both", "spec.new"})
	if len(got) != 2 || !strings.HasPrefix(got[0], "spec.new is new") || !strings.HasPrefix(got[1], "spec.old is gone") {
		t.Errorf("%q", got)
	}
}

// podFields visits the leaves: what is not a struct of the core API.
func podFields(path string, typ reflect.Type, visit func(path string)) {
	switch typ.Kind() {
	case reflect.Pointer:
		podFields(path, typ.Elem(), visit)
		return
	case reflect.Slice:
		podFields(path+"[]", typ.Elem(), visit)
		return
	case reflect.Struct:
		if typ.PkgPath() == reflect.TypeFor[corev1.PodSpec]().PkgPath() {
			for f := range typ.Fields() {
				podFields(fieldPath(path, f), f.Type, visit)
			}
			return
		}
	}
	visit(path)
}

func fieldPath(path string, f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		return path // embedded
	}
	return path + "." + name
}
