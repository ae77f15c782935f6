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

// stateTable says what each Go file whose code writes below the root
// directory, or anywhere on the host, leaves there.
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
			if writesToHost(s) {
				found = append(found, s.name)
			}
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
			return nil, fmt.Errorf("%s:%d: want \"package/file.go what it writes\"", stateTable, i+1)
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

// writesToHost says that something in the file creates or changes files.
func writesToHost(s source) (writes bool) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			writes = writes || makes(s, call)
		}
		return true
	})
	return writes
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

func TestWritersAreFound(t *testing.T) {
	const head = `package p
import ("os"; "nodekit.dev/internal/atomicfile"; fake "example.com/os")
func f() { `
	for code, want := range map[string]bool{
		`os.WriteFile("x", nil, 0)`:                                  true,
		`func() { atomicfile.WriteChecked("x", nil, 0) }()`:          true,
		`os.OpenFile("x", os.O_CREATE|os.O_RDWR, 0)`:                 true,
		`os.OpenFile("x", os.O_RDONLY, 0)`:                           false,
		`os.ReadFile("x"); fake.WriteFile("x"); atomicfile.Read("")`: false,
	} {
		if got := writesToHost(mustParse(t, "p/a.go", head+code+"}")); got != want {
			t.Errorf("%s writes: %v, want %v", code, got, want)
		}
	}
	problems := strings.Join(stateProblems([]string{"p/a.go", "p/b.go"}, map[string]string{"p/a.go": "x", "p/gone.go": "x"}), "\n")
	if !strings.Contains(problems, "p/gone.go does not write") || !strings.Contains(problems, "p/b.go writes") || strings.Contains(problems, "p/a.go") {
		t.Errorf("told\n%s", problems)
	}
}
