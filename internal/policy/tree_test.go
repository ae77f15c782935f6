package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "nodekit.dev"

var update = flag.Bool("update", false, "write the committed files of today's numbers anew")

// root is the repository's root, seen from this package's directory.
const root = "../.."

// goPackage is what `go list` says of a package.
type goPackage struct {
	ImportPath, Name, Dir, Doc string
	Standard                   bool
	Module                     *struct{ Path string }
	Imports, Deps              []string
	TestImports, XTestImports  []string
	GoFiles                    []string
	TestGoFiles, XTestGoFiles  []string
	Error                      *struct{ Err string }
}

// rel is the import path below the module.
func (p goPackage) rel() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

// packages lists the module's packages and all that they depend on.
var packages = sync.OnceValues(func() (all map[string]goPackage, err error) {
	cmd := exec.Command("go", "list", "-e", "-deps", "-json", "-tags", "grpcnotrace", "./...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.Join(err, errors.New(stderr.String()))
	}
	all = map[string]goPackage{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all[p.ImportPath] = p
	}
})

// ours are the packages of the main module, sorted.
func ours(t *testing.T) []goPackage {
	t.Helper()
	all, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	var list []goPackage
	for _, p := range all {
		if p.Module != nil && p.Module.Path == module {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b goPackage) int { return strings.Compare(a.ImportPath, b.ImportPath) })
	if len(list) == 0 {
		t.Fatal("go list found no package of " + module)
	}
	return list
}

// isPublic says that others import the package: no program, no test module,
// nothing internal.
func isPublic(p goPackage) bool {
	top, _, _ := strings.Cut(p.rel(), "/")
	return p.Name != "main" && !slices.Contains([]string{"internal", "examples", "test"}, top) && !strings.Contains(p.rel(), "/internal/")
}

// files lists what is committed or about to be, by slash path below root.
var files = sync.OnceValues(func() ([]string, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil { // no git: an unpacked archive
		return walk()
	}
	var list []string
	for name := range strings.SplitSeq(string(out), "\x00") {
		if info, err := os.Lstat(filepath.Join(root, name)); name != "" && err == nil && info.Mode().IsRegular() {
			list = append(list, name)
		}
	}
	return list, nil
})

func walk() (list []string, err error) {
	err = fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && slices.Contains([]string{".git", "bin", "_output"}, name) {
			return fs.SkipDir
		}
		if err == nil && entry.Type().IsRegular() {
			list = append(list, name)
		}
		return err
	})
	return list, err
}

// source is one Go file with its syntax and what its names mean, as far as
// that can be told without looking at other files.
type source struct {
	name string // slash path below the root
	file *ast.File
	set  *token.FileSet
	info *types.Info
}

func (s source) dir() string { return path.Dir(s.name) }

// at is where a node stands.
func (s source) at(n ast.Node) string {
	position := s.set.Position(n.Pos())
	return fmt.Sprintf("%s:%d", s.name, position.Line)
}

// isTest says that the file is only part of tests: a test file, a package
// made for tests, or the tree of test programs.
func (s source) isTest() bool {
	return strings.HasSuffix(s.name, "_test.go") || strings.HasPrefix(s.name, "test/") || strings.HasSuffix(s.dir(), "test")
}

// isProgram says that the file is part of a command.
func (s source) isProgram() bool {
	return strings.HasPrefix(s.name, "cmd/") || s.file.Name.Name == "main"
}

// imports says whether the file imports a package.
func (s source) imports(path string) bool {
	return slices.ContainsFunc(s.file.Imports, func(spec *ast.ImportSpec) bool { return strings.Trim(spec.Path.Value, `"`) == path })
}

func parse(set *token.FileSet, name string, text any) (source, error) {
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return source{}, err
	}
	info, _ := resolve(set, file)
	return source{name: name, file: file, set: set, info: info}, nil
}

// resolve says what the names in the files of a package mean. Imports are not
// followed: their names are known, what is behind them is not.
func resolve(set *token.FileSet, files ...*ast.File) (*types.Info, *types.Package) {
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: noImports{}, Error: func(error) {}} // errors: what stands in other files and packages
	pkg, _ := conf.Check(files[0].Name.Name, set, files, info)
	return info, pkg
}

type noImports struct{}

func (noImports) Import(path string) (*types.Package, error) { return nil, errors.New("not followed") }

// sources parses every Go file outside of testdata.
var sources = sync.OnceValues(func() (list []source, err error) {
	names, err := files()
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	for _, name := range names {
		if !strings.HasSuffix(name, ".go") || strings.Contains(name, "testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		s, err := parse(set, name, text)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
})

func allSources(t *testing.T) []source {
	t.Helper()
	list, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// mustParse is for the tests of the rules themselves.
func mustParse(t *testing.T, name, text string) source {
	t.Helper()
	s, err := parse(token.NewFileSet(), name, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
