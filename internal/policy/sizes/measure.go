package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
)

// report holds all that was measured, biggest first.
type report struct {
	files, functions, constructors, params, interfaces, imports []size
}

// modulePrefix is what imports of this module begin with.
const modulePrefix = `"nodekit.dev/`

// measure reads the Go files of a tree. Generated files do not count.
func measure(tree fs.FS, tests bool) (report, error) {
	names, err := goFiles(tree, tests)
	if err != nil {
		return report{}, err
	}
	var r report
	imported := map[string]map[string]bool{} // package folder: import paths
	for _, name := range names {
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return report{}, err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return report{}, err
		}
		if ast.IsGenerated(file) {
			continue
		}
		r.files = append(r.files, size{bytes.Count(text, []byte("\n")), file.Name.Name, name})
		r.measureFile(set, file)
		dir := path.Dir(name)
		for _, spec := range file.Imports {
			if strings.HasPrefix(spec.Path.Value, modulePrefix) {
				if imported[dir] == nil {
					imported[dir] = map[string]bool{}
				}
				imported[dir][spec.Path.Value] = true
			}
		}
	}
	for dir, paths := range imported {
		r.imports = append(r.imports, size{len(paths), path.Base(dir), dir})
	}
	for _, list := range [][]size{r.files, r.functions, r.constructors, r.params, r.interfaces, r.imports} {
		sortSizes(list)
	}
	return r, nil
}

func (r *report) measureFile(set *token.FileSet, file *ast.File) {
	where := func(n ast.Node) string {
		p := set.Position(n.Pos())
		return fmt.Sprintf("%s:%d", p.Filename, p.Line)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			lines := set.Position(n.End()).Line - set.Position(n.Pos()).Line + 1
			r.functions = append(r.functions, size{lines, funcName(n), where(n)})
			if isConstructor(n) {
				r.constructors = append(r.constructors, size{lines, funcName(n), where(n)})
				r.params = append(r.params, size{n.Type.Params.NumFields(), funcName(n), where(n)})
			}
		case *ast.TypeSpec:
			if i, ok := n.Type.(*ast.InterfaceType); ok {
				r.interfaces = append(r.interfaces, size{methods(i), n.Name.Name, where(n)})
			}
		}
		return true
	})
}

func isConstructor(fn *ast.FuncDecl) bool {
	rest, ok := strings.CutPrefix(fn.Name.Name, "New")
	return ok && fn.Recv == nil && (rest == "" || ast.IsExported(rest))
}

// methods counts the methods that an interface names itself; an embedded one
// counts as one.
func methods(i *ast.InterfaceType) (n int) {
	for _, field := range i.Methods.List {
		n += max(1, len(field.Names))
	}
	return n
}

func funcName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	switch t := fn.Recv.List[0].Type.(type) {
	case *ast.StarExpr:
		if id, ok := t.X.(*ast.Ident); ok {
			return "(*" + id.Name + ")." + fn.Name.Name
		}
	case *ast.Ident:
		return t.Name + "." + fn.Name.Name
	}
	return fn.Name.Name
}
