package policy

import (
	"bytes"
	"fmt"
	"go/doc"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackageDocs wants a package comment of every package, internal ones and
// programs included.
func TestPackageDocs(t *testing.T) {
	var found []finding
	for _, p := range ours(t) {
		if len(p.GoFiles) > 0 && p.Doc == "" {
			found = append(found, finding{"docs", p.rel(), "package", "has no package comment: purpose, a short use, rules for callers (doc.go)"})
		}
	}
	report(t, found, "docs")
}

// TestExamples wants a runnable example of every public package that exports
// anything.
func TestExamples(t *testing.T) { report(t, withoutExample(ours(t), allSources(t)), "examples") }

func withoutExample(list []goPackage, all []source) (found []finding) {
	exports, runs := map[string]bool{}, map[string]bool{}
	for _, s := range all {
		if strings.HasSuffix(s.name, "_test.go") {
			for _, example := range doc.Examples(s.file) {
				runs[s.dir()] = runs[s.dir()] || example.Output != "" || example.EmptyOutput
			}
		} else if exportsAny(s) {
			exports[s.dir()] = true
		}
	}
	for _, p := range list {
		if isPublic(p) && exports[p.rel()] && !runs[p.rel()] {
			found = append(found, finding{"examples", p.rel(), "package", "has no Example with an Output comment in its test files"})
		}
	}
	return found
}

func exportsAny(s source) bool {
	for id, object := range s.info.Defs {
		if object != nil && id.IsExported() && object.Parent() == object.Pkg().Scope() {
			return true
		}
	}
	return false
}

func TestExamplesFindWhatIsMissing(t *testing.T) {
	list := []goPackage{
		{ImportPath: module + "/with"}, {ImportPath: module + "/without"}, {ImportPath: module + "/silent"},
		{ImportPath: module + "/docs"}, {ImportPath: module + "/internal/x"}, {ImportPath: module + "/cmd/x", Name: "main"},
	}
	all := []source{
		mustParse(t, "with/a.go", "package with\nfunc F() {}"),
		mustParse(t, "with/a_test.go", "package with_test\nfunc ExampleF() {\n// Output: x\n}"),
		mustParse(t, "without/a.go", "package without\ntype T int"),
		mustParse(t, "silent/a.go", "package silent\nvar V = 1"),
		mustParse(t, "silent/a_test.go", "package silent_test\nfunc Example() {}"),
		mustParse(t, "docs/doc.go", "package docs\nfunc f() {}"),
		mustParse(t, "internal/x/a.go", "package x\nfunc F() {}"),
		mustParse(t, "cmd/x/main.go", "package main\nfunc F() {}"),
	}
	if got, want := texts(withoutExample(list, all)), "without package\nsilent package"; got != want {
		t.Errorf("found %q, want %q", got, want)
	}
}

// TestVolumePluginIsAsShortAsPromised: the title of the how-to says how long the
// example is.
func TestVolumePluginIsAsShortAsPromised(t *testing.T) {
	howto, err := os.ReadFile(filepath.Join(root, "docs/how-to/volume-plugin.md"))
	if err != nil {
		t.Fatal(err)
	}
	var promised int
	if _, err := fmt.Sscanf(string(howto), "# A volume plugin in %d lines", &promised); err != nil {
		t.Fatalf("the title promises nothing: %v", err)
	}
	code, err := os.ReadFile(filepath.Join(root, "examples/volume-plugin/plugin.go"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(code, []byte("\n")); lines > promised {
		t.Errorf("the plugin has %d lines, and %d were promised", lines, promised)
	}
}
