package policy

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A vocabulary maps a word to the packages that say it.
type vocabulary map[string]map[string]bool

func (v vocabulary) add(word, pkg string) {
	if v[word] == nil {
		v[word] = map[string]bool{}
	}
	v[word][pkg] = true
}

func (v vocabulary) String() string {
	var out strings.Builder
	for _, word := range slices.Sorted(maps.Keys(v)) {
		fmt.Fprintf(&out, "%-44s %s\n", word, strings.Join(slices.Sorted(maps.Keys(v[word])), " "))
	}
	return out.String()
}

// words prints the strings that users' scripts and other programs read:
// reasons, names with a domain in front, keys of log lines.
func words(list []*goCode) string {
	reasons, keys, logKeys := vocabulary{}, vocabulary{}, vocabulary{}
	for _, c := range list {
		if strings.HasSuffix(c.path, "test") || strings.HasPrefix(c.path, "examples/") {
			continue
		}
		r := newReader(c.sources)
		for _, s := range c.sources {
			ast.Inspect(s.file, func(n ast.Node) bool {
				for _, word := range r.reasons(n) {
					reasons.add(word, c.path)
				}
				for _, word := range r.logKeys(n) {
					logKeys.add(word, c.path)
				}
				if word, ok := domainName(n); ok {
					keys.add(word, c.path)
				}
				_, isImport := n.(*ast.ImportSpec)
				return !isImport
			})
		}
	}
	return "\n== reasons: of errors, events, conditions, container states, problems\n" + reasons.String() +
		"\n== labels, annotations and other names with a domain\n" + keys.String() +
		"\n== keys of log lines\n" + logKeys.String()
}

var hasDomain = regexp.MustCompile(`^([a-z0-9-]+\.)*(kubernetes\.io|k8s\.io|nodekit\.dev)/[A-Za-z0-9./_-]+$|^io\.kubernetes\.[A-Za-z0-9./_-]+$`)

func domainName(n ast.Node) (string, bool) {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	word := constant.StringVal(constant.MakeFromLiteral(lit.Value, lit.Kind, 0))
	return word, hasDomain.MatchString(word)
}

// reader knows what the expressions of one package mean.
type reader struct {
	info *types.Info
	// returns are the results of the function that a return belongs to.
	returns map[*ast.ReturnStmt]*ast.FieldList
	names   map[*ast.ReturnStmt]string
}

func newReader(sources []source) *reader {
	var files []*ast.File
	for _, s := range sources {
		files = append(files, s.file)
	}
	r := &reader{
		info:    &types.Info{Types: map[ast.Expr]types.TypeAndValue{}},
		returns: map[*ast.ReturnStmt]*ast.FieldList{}, names: map[*ast.ReturnStmt]string{},
	}
	conf := types.Config{Importer: noImports{}, Error: func(error) {}}
	_, _ = conf.Check(files[0].Name.Name, sources[0].set, files, r.info) // errors: what stands in other packages
	for _, file := range files {
		r.findReturns(file, "", nil)
	}
	return r
}

func (r *reader) findReturns(in ast.Node, name string, results *ast.FieldList) {
	ast.Inspect(in, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				r.findReturns(n.Body, n.Name.Name, n.Type.Results)
			}
			return false
		case *ast.FuncLit:
			r.findReturns(n.Body, "", n.Type.Results)
			return false
		case *ast.ReturnStmt:
			r.returns[n], r.names[n] = results, name
		}
		return true
	})
}

// isReason says that what is called so holds a reason.
func isReason(name string) bool {
	return strings.HasPrefix(strings.ToLower(name), "reason") || strings.HasSuffix(name, "Reason")
}

// reasons are the constants that the node gives to something called a reason:
// a constant, variable, field, argument or result.
func (r *reader) reasons(n ast.Node) (found []string) {
	note := func(name string, e ast.Expr) {
		if word, ok := r.text(e); ok && isReason(name) && word != "" {
			found = append(found, word)
		}
	}
	switch n := n.(type) {
	case *ast.ValueSpec:
		for i, value := range n.Values {
			note(n.Names[i].Name, value)
			note(lastName(n.Type), value)
		}
	case *ast.AssignStmt:
		for i := 0; i < len(n.Lhs) && len(n.Lhs) == len(n.Rhs); i++ {
			note(lastName(n.Lhs[i]), n.Rhs[i])
		}
	case *ast.KeyValueExpr:
		note(lastName(n.Key), n.Value)
	case *ast.CompositeLit:
		if fields, ok := underlying(r.info.TypeOf(n)).(*types.Struct); ok {
			for i, element := range n.Elts {
				if i < fields.NumFields() {
					note(fields.Field(i).Name(), element)
				}
			}
		}
	case *ast.CallExpr:
		for i, arg := range n.Args {
			note(r.parameter(n, i), arg)
		}
	case *ast.ReturnStmt:
		for i, name := range resultNames(r.returns[n]) {
			if name == "" && i == 0 {
				name = r.names[n]
			}
			if i < len(n.Results) {
				note(name, n.Results[i])
			}
		}
	}
	return found
}

// parameter is the name of the i-th parameter of the function called.
func (r *reader) parameter(call *ast.CallExpr, i int) string {
	switch name := calledName(call.Fun); {
	case name == "reasoned.New" && i == 0, name == "reasoned.Reason" && i == 1:
		return "reason" // of another package, whose signatures are not read
	}
	signature, ok := underlying(r.info.TypeOf(call.Fun)).(*types.Signature)
	if !ok || i >= signature.Params().Len() {
		return ""
	}
	return signature.Params().At(i).Name()
}

func resultNames(results *ast.FieldList) (names []string) {
	if results == nil {
		return nil
	}
	for _, field := range results.List {
		for _, id := range field.Names {
			names = append(names, id.Name)
		}
		if len(field.Names) == 0 {
			names = append(names, "")
		}
	}
	return names
}

// text is the value of a constant string.
func (r *reader) text(e ast.Expr) (string, bool) {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING { // also where a type is not known
		return constant.StringVal(constant.MakeFromLiteral(lit.Value, lit.Kind, 0)), true
	}
	if value := r.info.Types[e].Value; value != nil && value.Kind() == constant.String {
		return constant.StringVal(value), true
	}
	return "", false
}

// logKeys are the keys of a call of a logger, or "?" for one that is made up
// as it runs.
func (r *reader) logKeys(n ast.Node) (keys []string) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !isLogger(method.X) {
		return nil
	}
	first, known := map[string]int{
		"With": 0, "Debug": 1, "Info": 1, "Warn": 1, "Error": 1,
		"DebugContext": 2, "InfoContext": 2, "WarnContext": 2, "ErrorContext": 2, "Log": 3,
	}[method.Sel.Name]
	if !known {
		return nil
	}
	for i := first; i < len(call.Args); i += 2 {
		if key, ok := r.text(call.Args[i]); ok {
			keys = append(keys, key)
		} else if !call.Ellipsis.IsValid() {
			keys = append(keys, "?")
		}
	}
	return keys
}

// isLogger goes by the name: log, Log, logger, a.log("part"), log.With("k", v).
func isLogger(e ast.Expr) bool {
	if call, ok := e.(*ast.CallExpr); ok {
		e = call.Fun
		if with, ok := e.(*ast.SelectorExpr); ok && with.Sel.Name == "With" {
			return isLogger(with.X)
		}
	}
	name := strings.ToLower(lastName(e))
	return name == "log" || name == "logger" || name == "slog"
}

// lastName is the last name of a.b.C.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func underlying(t types.Type) types.Type {
	if t == nil {
		return nil
	}
	return t.Underlying()
}

func TestWordsAreFound(t *testing.T) {
	s := mustParse(t, "p/a.go", `package p
import ("nodekit.dev/internal/reasoned"; "log/slog")
const reasonConfig = "Config"
const other = "Other"
type Stop string
type StopReason string
const Deleted StopReason = "Deleted"
const fine Stop = "NotAReason"
type failure struct { at, message, reason string }
func classed(reason string, err error) error { return reasoned.New(reason, err) }
func f(log *slog.Logger, err error) (reason, message string) {
	_ = reasoned.New("New", err)
	_ = classed(other, err)
	_ = []failure{{"x", "y", "Positional"}, {reason: "Keyed"}}
	_ = event{Reason: "Foreign"}
	reason, message = "Assigned", "no"
	log.With("pod", 1).Info("text", "uid", 1, message, 2)
	_ = map[string]bool{"node.kubernetes.io/x": true, "kubernetes.io": true, "see kubernetes.io/x": true}
	return "Returned", "no"
}
func fallbackReason() string { return "Fallback" }
func text() string { return "no" }
type note struct { A int `+"`json:\"a,omitempty\"`"+`; b int }
`)
	got := words([]*goCode{{path: "p", sources: []source{s}}}) + formats([]*goCode{{path: "p", sources: []source{s}}})
	want := `
== reasons: of errors, events, conditions, container states, problems
Assigned p
Config p
Deleted p
Fallback p
Foreign p
Keyed p
New p
Other p
Positional p
Returned p

== labels, annotations and other names with a domain
node.kubernetes.io/x p

== keys of log lines
? p
pod p
uid p

== JSON that is read or written, beside the exported types
p.note a,omitempty:int
`
	if got = regexp.MustCompile(` +`).ReplaceAllString(got, " "); got != want {
		t.Errorf("found\n%s\nwant\n%s", got, want)
	}
}
