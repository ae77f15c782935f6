package policy

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// TestNoPackageState wants every package-level variable to be something that
// nobody changes: an error, a compile-time assertion, an embedded file, the
// result of a constructor in harmless, or a table that its package never
// writes to and does not export. Two agents live in one process.
func TestNoPackageState(t *testing.T) {
	byPackage := map[string][]source{}
	for _, s := range allSources(t) {
		if !s.isTest() {
			byPackage[s.dir()+" "+s.file.Name.Name] = append(byPackage[s.dir()+" "+s.file.Name.Name], s)
		}
	}
	var found []finding
	for _, sources := range byPackage {
		found = append(found, packageState(sources)...)
	}
	report(t, found, "state")
}

// harmless are constructors of values that can not be changed.
var harmless = []string{"errors.New", "fmt.Errorf", "regexp.MustCompile", "strings.NewReplacer", "template.Must", "reflect.TypeFor", "reflect.TypeOf"}

func packageState(sources []source) (found []finding) {
	written := writes(sources)
	for _, s := range sources {
		for _, decl := range s.file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, spec := range gen.Specs {
				spec := spec.(*ast.ValueSpec)
				for i, name := range spec.Names {
					if why := stateful(gen, spec, i, written); why != "" {
						found = append(found, finding{"state", s.dir(), name.Name, s.at(name) + ": package-level state (" + why +
							"): two agents would share it; make it a field, a constant or a function"})
					}
				}
			}
		}
	}
	return found
}

// stateful says why the variable may change; empty: it does not.
func stateful(gen *ast.GenDecl, spec *ast.ValueSpec, i int, written map[string]bool) string {
	name := spec.Names[i].Name
	switch {
	case name == "_":
		return ""
	case embeds(gen.Doc) || embeds(spec.Doc):
		return ""
	case written[name]:
		return "it is written to"
	case len(spec.Values) != len(spec.Names):
		return "it has no value of its own"
	}
	switch value := spec.Values[i].(type) {
	case *ast.CallExpr:
		if slices.Contains(harmless, calledName(value.Fun)) {
			return ""
		}
		return "nobody knows whether " + calledName(value.Fun) + " gives something that changes"
	case *ast.CompositeLit:
		if ast.IsExported(name) {
			return "importers can write to an exported table"
		}
		if kind := calledName(value.Type); strings.HasPrefix(kind, "sync.") || strings.HasPrefix(kind, "atomic.") {
			return kind + " is there to change"
		}
		return ""
	case *ast.BasicLit, *ast.BinaryExpr:
		return "make it a constant"
	}
	return "it may be replaced or changed"
}

// calledName is the function's name as written, without type arguments.
func calledName(fun ast.Expr) string {
	switch fun := fun.(type) {
	case *ast.IndexExpr:
		return calledName(fun.X)
	case *ast.SelectorExpr:
		return calledName(fun.X) + "." + fun.Sel.Name
	case *ast.Ident:
		return fun.Name
	}
	return "a function"
}

func embeds(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
}

// writes collects the names of package-level variables that some function
// assigns to, in whole or in part, takes the address of, or deletes from.
func writes(sources []source) map[string]bool {
	var files []*ast.File
	for _, s := range sources {
		files = append(files, s.file)
	}
	info, pkg := resolve(sources[0].set, files...)
	written := map[string]bool{}
	note := func(e ast.Expr) {
		if id := base(e); id != nil {
			if variable, ok := info.Uses[id].(*types.Var); ok && variable.Parent() == pkg.Scope() {
				written[id.Name] = true
			}
		}
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, left := range n.Lhs {
					note(left)
				}
			case *ast.IncDecStmt:
				note(n.X)
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					note(n.X)
				}
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && slices.Contains([]string{"delete", "clear", "copy"}, id.Name) && len(n.Args) > 0 {
					note(n.Args[0])
				}
			}
			return true
		})
	}
	return written
}

// base is the variable that an expression such as v.x[i] is a part of.
func base(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return base(e.X)
	case *ast.IndexExpr:
		return base(e.X)
	case *ast.ParenExpr:
		return base(e.X)
	case *ast.StarExpr:
		return base(e.X)
	case *ast.SliceExpr:
		return base(e.X)
	}
	return nil
}

func TestNoPackageStateFindsIt(t *testing.T) {
	s := mustParse(t, "p/a.go", `package p
import ("errors"; "fmt"; "regexp"; "sync"; "time"; _ "embed")
var ErrGone = errors.New("gone")
var errOther = fmt.Errorf("x: %w", ErrGone)
var name = regexp.MustCompile("x")
var _ fmt.Stringer = (*T)(nil)
var table = map[string]int{"a": 1}
//go:embed x.txt
var text string
const fine = 1

var Exported = []string{"a"}
var counter int
var lock sync.Mutex
var now = time.Now
var limit = 10
var unknown = make(map[string]bool)
var written = map[string]int{}
var addressed = struct{ n int }{}
var deleted = map[string]int{}
var guard = sync.Mutex{}
var shadowed = []int{1}

type T struct{}
func (T) f() {
	written["a"] = 1
	g(&addressed)
	delete(deleted, "a")
	shadowed := shadowed
	shadowed = nil
	_ = table["a"]
}
`)
	want := "p Exported\np counter\np lock\np now\np limit\np unknown\np written\np addressed\np deleted\np guard"
	if got := texts(packageState([]source{s})); got != want {
		t.Errorf("found\n%s\nwant\n%s", got, want)
	}
}
