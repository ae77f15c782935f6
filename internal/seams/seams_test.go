package seams_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nodekit.dev/internal/seams"
	"nodekit.dev/node/nodefx"
)

const root = "../.."

var update = flag.Bool("update", false, "write docs/seams.md")

func TestPage(t *testing.T) {
	path, page := filepath.Join(root, "docs/seams.md"), seams.Page(nodefx.Seams())
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil { //nolint:gosec // a page for everyone
			t.Fatal(err)
		}
		return
	}
	if committed, err := os.ReadFile(path); string(committed) != page {
		t.Errorf("docs/seams.md is stale (%v): run make docs", err)
	}
}

// TestRows: what a row says is there is there, and what is finished is done.
func TestRows(t *testing.T) {
	declared := declarations{}
	for _, section := range seams.Table() {
		for _, r := range section.Rows {
			for _, problem := range problems(t, declared, r) {
				t.Errorf("%s: %s: %s", section.Title, r.Patch, problem)
			}
		}
	}
}

func problems(t *testing.T, declared declarations, r seams.Row) (found []string) {
	there := r.Done != ""
	if slices.Contains(seams.Finished(), r.Pending) {
		found = append(found, "pending, though "+string(r.Pending)+" is finished")
	}
	if there != (len(r.Uses) > 0 && r.Test != "") || !there && r.Pending == "" {
		found = append(found, "a row that is done names Go and a test, one that is not names the issue that brings it")
	}
	for _, name := range append(slices.Clone(r.Uses), r.Test) {
		if name != "" && !declared.has(t, name) {
			found = append(found, name+" does not exist")
		}
	}
	if _, err := os.Stat(filepath.Join(root, "examples", r.Example)); err != nil {
		found = append(found, "no such example: "+r.Example)
	}
	return found
}

// TestRowsFindWhatIsWrong plants bad rows.
func TestRowsFindWhatIsWrong(t *testing.T) {
	good := seams.Row{Uses: []string{"node.Engine"}, Test: "node/nodefx.TestReplace", Done: seams.House}
	for name, edit := range map[string]func(*seams.Row){
		"pending though finished": func(r *seams.Row) { r.Pending = seams.House },
		"no test":                 func(r *seams.Row) { r.Test = "" },
		"a test that is gone":     func(r *seams.Row) { r.Test = "node/nodefx.TestGone" },
		"a type that is gone":     func(r *seams.Row) { r.Uses = []string{"node.Gone"} },
		"a method that is gone":   func(r *seams.Row) { r.Uses = []string{"node/nodefx.Agent.Gone"} },
		"an example that is gone": func(r *seams.Row) { r.Example = "gone/main.go" },
		"neither done nor to be":  func(r *seams.Row) { *r = seams.Row{} },
	} {
		row := good
		edit(&row)
		if len(problems(t, declarations{}, row)) == 0 {
			t.Errorf("%s: not found", name)
		}
	}
	if found := problems(t, declarations{}, good); len(found) > 0 {
		t.Errorf("a good row: %v", found)
	}
}

// TestRowCounts: the page has a row for each patch and wish that was found.
func TestRowCounts(t *testing.T) {
	for i, want := range []int{13, 10, 24} {
		if got := len(seams.Table()[i].Rows); got != want {
			t.Errorf("%s: %d rows, want %d", seams.Table()[i].Title, got, want)
		}
	}
}

// declarations are the names of each package, tests included: NAME, TYPE.METHOD
// and TYPE.FIELD.
type declarations map[string]map[string]bool

func (d declarations) has(t *testing.T, name string) bool {
	t.Helper()
	dir, rest, ok := strings.Cut(name, ".")
	if !ok {
		return false
	}
	if d[dir] == nil {
		d[dir] = declaredIn(t, filepath.Join(root, dir))
	}
	return d[dir][rest]
}

func declaredIn(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			declare(names, decl)
		}
	}
	return names
}

func declare(names map[string]bool, decl ast.Decl) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		names[receiver(decl)+decl.Name.Name] = true
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			spec, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			names[spec.Name.Name] = true
			if fields, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range fields.Fields.List {
					for _, name := range field.Names {
						names[spec.Name.Name+"."+name.Name] = true
					}
				}
			}
		}
	}
}

func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	of := fn.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if id, ok := of.(*ast.Ident); ok {
		return id.Name + "."
	}
	return ""
}
