package policy

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// apiFile is what others build on, as text. Its diff is what a reviewer reads
// first: nothing of it changes unseen.
const apiFile = root + "/docs/api.txt"

const apiHead = `# What others build on: exported Go, words, formats. Written by make api; read
# its diff in review. docs/upgrade.md says what may change in which version.
`

// TestAPI holds docs/api.txt to the code.
func TestAPI(t *testing.T) {
	packages := byPackage(t)
	text := apiHead + exported(t, packages) + words(packages) + formats(packages) + stateFiles(t, packages)
	if *update {
		if err := os.WriteFile(apiFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	committed, err := os.ReadFile(apiFile)
	if err != nil {
		t.Fatal(err)
	}
	if changes := lineChanges(string(committed), text); len(changes) > 0 {
		t.Errorf("docs/api.txt is stale: run make api, read its diff and commit it. What changed:\n%s", strings.Join(firstOf(changes, 40), "\n"))
	}
}

// goCode is one package that is not only there for tests.
type goCode struct {
	path    string
	name    string
	sources []source
}

func (c goCode) public() bool {
	return isPublic(goPackage{ImportPath: module + "/" + c.path, Name: c.name})
}

// byPackage groups the files that are built here, by package. Packages made
// for tests are in, because others import them; test files are not.
func byPackage(t *testing.T) (list []*goCode) {
	found := map[string]*goCode{}
	for _, s := range allSources(t) {
		if strings.HasSuffix(s.name, "_test.go") || strings.HasPrefix(s.name, "test/") || strings.HasPrefix(s.name, "internal/policy/") {
			continue
		}
		if ok, err := build.Default.MatchFile(filepath.Join(root, s.dir()), path.Base(s.name)); err != nil {
			t.Fatal(err)
		} else if !ok {
			continue
		}
		c := found[s.dir()]
		if c == nil {
			c = &goCode{path: s.dir(), name: s.file.Name.Name}
			found[s.dir()] = c
			list = append(list, c)
		}
		c.sources = append(c.sources, s)
	}
	slices.SortFunc(list, func(a, b *goCode) int { return cmp.Compare(a.path, b.path) })
	return list
}

// exported prints the declarations that importers of the public packages see.
func exported(t *testing.T, list []*goCode) string {
	var out strings.Builder
	for _, c := range list {
		if !c.public() {
			continue
		}
		set := token.NewFileSet()
		var files []*ast.File
		for _, s := range c.sources {
			// Without comments, and apart from the other rules: go/doc cuts
			// the syntax tree down.
			file, err := parser.ParseFile(set, filepath.Join(root, s.name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		text, err := declarations(set, files, module+"/"+c.path)
		if err != nil {
			t.Fatal(err)
		}
		if text != "" {
			fmt.Fprintf(&out, "\n== package %s/%s\n%s", module, c.path, text)
		}
	}
	return out.String()
}

func declarations(set *token.FileSet, files []*ast.File, importPath string) (string, error) {
	pkg, err := doc.NewFromFiles(set, files, importPath)
	if err != nil {
		return "", err
	}
	var nodes []ast.Node
	values := func(list []*doc.Value) {
		for _, v := range list {
			nodes = append(nodes, v.Decl)
		}
	}
	funcs := func(list []*doc.Func) {
		for _, f := range list {
			nodes = append(nodes, f.Decl)
		}
	}
	values(pkg.Consts)
	values(pkg.Vars)
	funcs(pkg.Funcs)
	for _, typ := range pkg.Types {
		nodes = append(nodes, typ.Decl)
		values(typ.Consts)
		values(typ.Vars)
		funcs(typ.Funcs)
		funcs(typ.Methods)
	}
	var out bytes.Buffer
	for _, node := range nodes {
		if err := printNode(&out, set, node); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

// printNode prints without blank lines and columns, so that moving a comment
// is no change.
func printNode(out *bytes.Buffer, set *token.FileSet, node ast.Node) error {
	var text bytes.Buffer
	conf := printer.Config{Mode: printer.UseSpaces | printer.TabIndent, Tabwidth: 8}
	if err := conf.Fprint(&text, set, node); err != nil {
		return err
	}
	for line := range strings.SplitSeq(text.String(), "\n") {
		if words := strings.Fields(line); len(words) > 0 {
			indent := line[:len(line)-len(strings.TrimLeft(line, "\t"))]
			out.WriteString(indent + strings.Join(words, " ") + "\n")
		}
	}
	return nil
}

// lineChanges lists the lines that are only in one of two texts, under the
// head of the section that they stand in.
func lineChanges(before, after string) (changes []string) {
	count := map[string]int{}
	for line := range strings.SplitSeq(before, "\n") {
		count[line]--
	}
	for line := range strings.SplitSeq(after, "\n") {
		count[line]++
	}
	collect := func(text, sign string, weight int) {
		head := ""
		for line := range strings.SplitSeq(text, "\n") {
			if strings.HasPrefix(line, "== ") {
				head = line
			}
			if count[line]*weight > 0 {
				count[line] -= weight
				changes = append(changes, sign+" "+line+"   ("+strings.TrimPrefix(head, "== ")+")")
			}
		}
	}
	collect(before, "-", -1)
	collect(after, "+", 1)
	if len(changes) == 0 && before != after {
		changes = append(changes, "only the order of lines")
	}
	return changes
}

func firstOf(list []string, n int) []string {
	if len(list) > n {
		return append(slices.Clone(list[:n]), fmt.Sprintf("... and %d more", len(list)-n))
	}
	return list
}

func TestAPITellsWhatChanged(t *testing.T) {
	const text = `package p
import "time"
const Reason = "Gone" // a comment
const hidden = 1
type T struct {
	A int ` + "`json:\"a\"`" + `

	b int
}
func (t *T) M(d time.Duration) error { return nil }
func (t *T) m() {}
func New() *T { return &T{b: hidden} }
type I interface { M(time.Duration) error }
`
	render := func(text string) string {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, "p.go", text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		out, err := declarations(set, []*ast.File{file}, "p")
		if err != nil {
			t.Fatal(err)
		}
		return "== package p\n" + out
	}
	before := render(text)
	for change, want := range map[string]string{
		"hidden = 1|hidden = 2":             "",
		"a comment|another":                 "",
		"m()|m2()":                          "",
		"A int|B int":                       "-     A int `json:\"a\"`   (package p)\n+     B int `json:\"a\"`   (package p)",
		"M(d time.D|M(wait time.D":          "- func (t *T) M(d time.Duration) error   (package p)\n+ func (t *T) M(wait time.Duration) error   (package p)",
		`"Gone"|"Away"`:                     "- const Reason = \"Gone\"   (package p)\n+ const Reason = \"Away\"   (package p)",
		"func New() *T|func N() *T":         "- func New() *T   (package p)\n+ func N() *T   (package p)",
		"type I interface|type i interface": "- type I interface{ M(time.Duration) error }   (package p)",
	} {
		from, to, _ := strings.Cut(change, "|")
		changes := strings.Join(lineChanges(before, render(strings.Replace(text, from, to, 1))), "\n")
		if got := strings.ReplaceAll(changes, "\t", "    "); got != want {
			t.Errorf("%s: told\n%s\nwant\n%s", change, got, want)
		}
	}
}
