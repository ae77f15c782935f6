package policy

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// ban is something that code must not use, except where it may.
type ban struct {
	pkg     string // import path; empty: a builtin
	names   []string
	except  func(source) bool
	instead string
}

func bans() []ban {
	programs := func(s source) bool { return s.isTest() || s.isProgram() }
	entry := func(s source) bool { // where a program, a graph or a test begins
		return programs(s) || strings.HasPrefix(s.name, "examples/") || strings.HasSuffix(s.dir(), "fx")
	}
	never := func(source) bool { return false }
	return []ban{
		{"os", []string{"Exit"}, programs, "return an error; only main exits"},
		{"log", []string{"Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln"}, programs, "return an error"},
		{"", []string{"panic"}, programs, "return an error"},
		{"context", []string{"Background", "TODO"}, entry, "take the caller's context (context.WithoutCancel and a limit to clean up)"},
		{"time", []string{"Sleep"}, never, "wait on an event or a context; in tests poll with a ticker and a deadline"},
		{"log", []string{"Print", "Printf", "Println", "Default", "SetOutput"}, programs, "use an injected *slog.Logger"},
		{"log/slog", []string{"Default", "SetDefault", "Debug", "Info", "Warn", "Error", "InfoContext", "WarnContext", "ErrorContext", "DebugContext"}, programs, "use an injected *slog.Logger"},
		{"net/http", []string{"DefaultClient", "DefaultTransport", "DefaultServeMux", "Handle", "HandleFunc", "Get", "Post", "Head", "PostForm"},
			programs, "use a client or mux of your own: two agents share the default one"},
		{"flag", []string{"CommandLine", "Parse", "Bool", "String", "Int", "Duration"}, programs, "take a Config value"},
	}
}

// TestBannedCalls looks at every Go file for what must not be used there.
func TestBannedCalls(t *testing.T) {
	var found []finding
	for _, s := range allSources(t) {
		found = append(found, bannedIn(s)...)
	}
	report(t, found, "calls")
}

func bannedIn(s source) (found []finding) {
	list := slices.DeleteFunc(bans(), func(b ban) bool { return b.except(s) })
	note := func(at ast.Node, pkg, name string) {
		for _, b := range list {
			if b.pkg != pkg || !slices.Contains(b.names, name) || name == "Sleep" && fakeTime(s, at) {
				continue
			}
			thing := strings.TrimPrefix(pkg+"."+name, ".")
			found = append(found, finding{"calls", s.name, thing, s.at(at) + ": " + b.instead})
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); ok {
				if pkg, ok := s.info.Uses[id].(*types.PkgName); ok {
					note(n, pkg.Imported().Path(), n.Sel.Name)
				}
			}
		case *ast.Ident:
			if builtin, ok := s.info.Uses[n].(*types.Builtin); ok {
				note(n, "", builtin.Name())
			}
		}
		return true
	})
	for _, decl := range s.file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			found = append(found, finding{"calls", s.name, "init", s.at(fn) + ": build it when it is first asked for, or in a constructor"})
		}
	}
	return found
}

// fakeTime says that a sleep takes no time: it stands in a test that uses
// synctest, and its line says "// fake time".
func fakeTime(s source, at ast.Node) bool {
	if !s.isTest() || !s.imports("testing/synctest") {
		return false
	}
	line := s.set.Position(at.Pos()).Line
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			if s.set.Position(c.Pos()).Line == line && strings.HasPrefix(c.Text, "// fake time") {
				return true
			}
		}
	}
	return false
}

func TestBannedCallsAreFound(t *testing.T) {
	const text = `package p
import ("context"; "log/slog"; "net/http"; "os"; "time"; "testing/synctest")
func init() {}
func f(log *slog.Logger) {
	panic("x")
	os.Exit(1)
	_ = context.Background()
	time.Sleep(1)
	time.Sleep(1) // fake time
	slog.Info("x")
	log.Info("x")
	_ = http.DefaultClient
}
type T struct{}
func (T) init() {}
func g(panic func(string)) { panic("fine") }
`
	for name, want := range map[string]string{
		"volume/x.go":           "panic os.Exit context.Background time.Sleep time.Sleep log/slog.Info net/http.DefaultClient init",
		"volume/x_test.go":      "time.Sleep init",
		"runtime/xtest/x.go":    "time.Sleep init",
		"cmd/kubelet/app/x.go":  "time.Sleep time.Sleep init",
		"node/nodefx/x.go":      "panic os.Exit time.Sleep time.Sleep log/slog.Info net/http.DefaultClient init",
		"examples/add-a/x.go":   "panic os.Exit time.Sleep time.Sleep log/slog.Info net/http.DefaultClient init",
		"test/integration/x.go": "time.Sleep init",
	} {
		var got []string
		for _, f := range bannedIn(mustParse(t, name, text)) {
			got = append(got, f.thing)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: found %v, want %s", name, got, want)
		}
	}
}
