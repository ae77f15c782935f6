package policy

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// formats prints the shape of the JSON that is not in the exported API.
func formats(list []*goCode) string {
	var out bytes.Buffer
	out.WriteString("\n== JSON that is read or written, beside the exported types\n")
	for _, c := range list {
		for _, s := range c.sources {
			for _, spec := range jsonTypes(s.file) {
				if c.public() && spec.Name.IsExported() {
					continue
				}
				fmt.Fprintf(&out, "%s.%s", c.path, spec.Name.Name)
				for _, field := range spec.Type.(*ast.StructType).Fields.List {
					if tag := jsonTag(field); tag != "" {
						fmt.Fprintf(&out, " %s:%s", tag, types.ExprString(field.Type))
					}
				}
				out.WriteString("\n")
			}
		}
	}
	return out.String()
}

func jsonTypes(file *ast.File) (found []*ast.TypeSpec) {
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			if fields, ok := spec.Type.(*ast.StructType); ok {
				if slices.ContainsFunc(fields.Fields.List, func(f *ast.Field) bool { return jsonTag(f) != "" }) {
					found = append(found, spec)
				}
			}
		}
		return true
	})
	return found
}

func jsonTag(field *ast.Field) string {
	if field.Tag == nil {
		return ""
	}
	return reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
}

// stateTable says what each function that writes below the root directory, or
// anywhere on the host, leaves there.
const stateTable = "testdata/statefiles.txt"

// stateFiles prints that table, and wants a line in it for every writer in
// the code and no others.
func stateFiles(t *testing.T, list []*goCode) string {
	told, err := readStateTable()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, c := range list {
		if strings.HasSuffix(c.path, "test") || strings.HasPrefix(c.path, "examples/") || strings.Contains(c.path, "/internal/") {
			continue
		}
		for _, s := range c.sources {
			found = append(found, writers(s)...)
		}
	}
	for _, problem := range stateProblems(found, told) {
		t.Error(problem)
	}
	var out strings.Builder
	out.WriteString("\n== files and folders that are written\n")
	for _, name := range slices.Sorted(maps.Keys(told)) {
		fmt.Fprintf(&out, "%-44s %s\n", name, told[name])
	}
	return out.String()
}

func stateProblems(found []string, told map[string]string) (problems []string) {
	for _, name := range found {
		if told[name] == "" {
			problems = append(problems, fmt.Sprintf("%s writes to the host: say in internal/policy/%s what, where and in which format", name, stateTable))
		}
	}
	for name := range told {
		if !slices.Contains(found, name) {
			problems = append(problems, fmt.Sprintf("internal/policy/%s: %s does not write any more", stateTable, name))
		}
	}
	slices.Sort(problems)
	return problems
}

func readStateTable() (map[string]string, error) {
	text, err := os.ReadFile(stateTable)
	if err != nil {
		return nil, err
	}
	told := map[string]string{}
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, what, _ := strings.Cut(line, " ")
		if told[name] = strings.TrimSpace(what); told[name] == "" {
			return nil, fmt.Errorf("%s:%d: want \"package.function what it writes\"", stateTable, i+1)
		}
	}
	return told, nil
}

// makers create or change files and folders.
var makers = map[string][]string{
	"os":                            {"WriteFile", "Create", "Mkdir", "MkdirAll", "Symlink", "Link"},
	"golang.org/x/sys/unix":         {"Mkdirat", "Symlinkat", "Mknod", "Mkfifo"},
	module + "/internal/atomicfile": {"Write", "WriteChecked"},
}

// writers are the functions of a file that write to the host, as
// package.function or package.type.method.
func writers(s source) (found []string) {
	for _, decl := range s.file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		writes := false
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				writes = writes || makes(s, call)
			}
			return true
		})
		if writes {
			found = append(found, s.dir()+"."+receiver(fn)+fn.Name.Name)
		}
	}
	return found
}

func makes(s source, call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	id, ok := selector.X.(*ast.Ident)
	if !ok {
		return false
	}
	pkg, ok := s.info.Uses[id].(*types.PkgName)
	if !ok {
		return false
	}
	if selector.Sel.Name == "OpenFile" && pkg.Imported().Path() == "os" && len(call.Args) == 3 {
		flags := types.ExprString(call.Args[1])
		return strings.Contains(flags, "O_CREATE") || strings.Contains(flags, "O_WRONLY") || strings.Contains(flags, "O_RDWR")
	}
	return slices.Contains(makers[pkg.Imported().Path()], selector.Sel.Name)
}

func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return ""
	}
	return strings.Trim(types.ExprString(fn.Recv.List[0].Type), "*") + "."
}

func TestWritersAreFound(t *testing.T) {
	s := mustParse(t, "p/a.go", `package p
import ("os"; "nodekit.dev/internal/atomicfile"; fake "example.com/os")
func write() { os.WriteFile("x", nil, 0) }
func state() { func() { atomicfile.WriteChecked("x", nil, 0) }() }
func (t *T) open() { os.OpenFile("x", os.O_CREATE|os.O_RDWR, 0) }
func read() { os.OpenFile("x", os.O_RDONLY, 0); os.ReadFile("x"); fake.WriteFile("x") }
`)
	found := writers(s)
	if got := strings.Join(found, " "); got != "p.write p.state p.T.open" {
		t.Fatalf("found %s", got)
	}
	problems := strings.Join(stateProblems(found, map[string]string{"p.write": "x", "p.state": "x", "p.gone": "x"}), "\n")
	if !strings.Contains(problems, "p.gone does not write") || !strings.Contains(problems, "p.T.open writes") || strings.Contains(problems, "p.write") {
		t.Errorf("told\n%s", problems)
	}
}
