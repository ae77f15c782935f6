package policy

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// floors says what each package of this module may import of this module.
// The first line that fits a package holds for it.
//
//	a/b     that package          a/...   it and all below it
//	a/*     one level below a     */x     any path that ends in x
//	ROOTS   the root packages of floor 1
//	OWN     the package's own family: what stands below the same folder as it,
//	        on floor 1 the folder at the top, elsewhere the two topmost
//
// A root package never imports its own subpackages, whatever its line says.
const floors = `
# packages           may import                                             why
examples/...         PUBLIC                                                 # 6: what a vendor may import, never internal
test/...             ...                                                    # 6
cmd/...              ...                                                    # 6
*fx                  ROOTS internal/... runtime/... probe/... volume/... resources/... shutdown/... credentials/... metrics/... node/...  # 5: all below cmd
internal/...         internal/...                                           # 0: nobody's product knows no product
runtime/...          OWN internal/...                                       # 1: no sibling imports a sibling
probe/...            OWN internal/...                                       # 1
volume/...           OWN internal/...                                       # 1
resources/...        OWN internal/...                                       # 1
shutdown/...         OWN internal/...                                       # 1
credentials/...      OWN internal/...                                       # 1
node/lifecycle       ROOTS internal/...                                     # 2: the pure pod machine
node/podactor        node/lifecycle ROOTS internal/...                      # 3a: declares what the pod machine calls
node                 node/podactor node/lifecycle ROOTS internal/...        # 3b: re-exports the seams
node/cluster         node/... ROOTS volume/... credentials/... resources/... internal/...  # 4: ties what talks to the API server, for node/wire
node/wire/...        node/... ROOTS runtime/... probe/... volume/... resources/... shutdown/... credentials/... internal/...  # 4: ties the parts by hand
metrics              internal/...                                           # 4: registry and exposition only
metrics/...          metrics node node/podactor node/lifecycle ROOTS runtime/... probe/... volume/... resources/... shutdown/... credentials/... internal/...  # 4: reads producers
node/internal/*test  node/... ROOTS runtime/... internal/...                # fakes for the tests of node
node/...             OWN node node/podactor node/lifecycle ROOTS internal/...  # 3c: never each other
`

// fxFloor drags fx along; only what aboveFx names may import it.
var (
	fxFloor = []string{"*fx", "internal/fxrun"}
	aboveFx = []string{"*fx", "cmd/...", "examples/...", "test/..."}
)

var roots = []string{"runtime", "probe", "volume", "resources", "shutdown", "credentials"}

// outside says who may import what from outside of this module. A package
// that no line names may be imported by everyone (go.mod's list bounds them).
const outside = `
# import path                          who                                         instead
k8s.io/kubernetes                      -                                           # not made to be imported; use the staging modules
k8s.io/client-go/kubernetes            -                                           # weighs 274 packages and more; use a REST client with the groups called
k8s.io/client-go/informers             -                                           # use tools/cache with our own list and watch
k8s.io/client-go/util/certificate      -                                           # weighs 394 packages; use credentials/nodecert
k8s.io/client-go                       node/* node/*/* credentials/nodecert credentials/token internal/kubeclient internal/kubeclient/kubeclienttest internal/clientlog/clientlogtest test/...  # declare the getters that you call; node/* and credentials/* fit them
k8s.io/cri-api                         runtime/cri/... runtime/runtimetest/... test/...  # only runtime/cri and runtime/runtimetest speak the CRI; use package runtime's types
go.uber.org/fx                         *fx internal/fxrun test/...                 # parts are wired by hand in node/wire; fx stays in the *fx packages, nodefx has options for the rest
go.uber.org/dig                        *fx internal/fxrun test/...                 # parts are wired by hand in node/wire; fx stays in the *fx packages, nodefx has options for the rest
github.com/spf13/cobra                 cmd/... test/...                            # commands belong in cmd; take a Config value
github.com/spf13/pflag                 cmd/... examples/... test/...               # flags belong in cmd and in vendors' app.AddFlags; take a Config value
github.com/prometheus                  metrics/... test/...                        # give your package an Observer; package metrics fills it
k8s.io/klog                            cmd/... test/...                            # take a *slog.Logger
github.com/go-logr                     cmd/... internal/clientlog test/...         # take a *slog.Logger
testing                                *test test/...                              # only for packages made for tests
net/http/pprof                         cmd/... test/...                            # it registers on http.DefaultServeMux; serve runtime/pprof by hand
expvar                                 -                                           # it registers on http.DefaultServeMux
`

// pure are the only imports from outside that the pod machine may have.
var pure = []string{"k8s.io/api/core/v1", "k8s.io/apimachinery/..."}

// rule is one line of such a table.
type rule struct {
	of   string
	list []string
	why  string
}

func table(text string) (rules []rule) {
	for line := range strings.SplitSeq(text, "\n") {
		line, why, _ := strings.Cut(line, "#")
		if fields := strings.Fields(line); len(fields) > 0 {
			rules = append(rules, rule{of: fields[0], list: fields[1:], why: strings.TrimSpace(why)})
		}
	}
	return rules
}

// fits says whether a path is what a pattern names.
func fits(pattern, name string) bool {
	switch {
	case pattern == "...":
		return true
	case strings.HasSuffix(pattern, "/..."):
		base := strings.TrimSuffix(pattern, "/...")
		return name == base || strings.HasPrefix(name, base+"/")
	case strings.HasPrefix(pattern, "*"): // *fx: a last element that ends so
		return strings.HasSuffix(path.Base(name), pattern[1:]) && path.Base(name) != pattern[1:]
	}
	ok, _ := path.Match(pattern, name)
	return ok
}

func anyFits(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return fits(p, name) })
}

// family is what OWN means for a package.
func family(pkg string) string {
	parts := strings.SplitN(pkg, "/", 3)
	if slices.Contains(roots, parts[0]) || len(parts) == 1 {
		return parts[0]
	}
	return parts[0] + "/" + parts[1]
}

func mayImport(r rule, pkg, imported string) bool {
	if strings.HasPrefix(imported, pkg+"/") && isRoot(pkg) {
		return false
	}
	if anyFits(fxFloor, imported) && !anyFits(aboveFx, pkg) {
		return false
	}
	for _, pattern := range r.list {
		switch pattern {
		case "ROOTS":
			if slices.Contains(roots, imported) {
				return true
			}
		case "OWN":
			if fits(family(pkg)+"/...", imported) {
				return true
			}
		case "PUBLIC":
			if !fits("internal/...", imported) && !fits("test/...", imported) {
				return true
			}
		default:
			if fits(pattern, imported) {
				return true
			}
		}
	}
	return false
}

func isRoot(pkg string) bool {
	return slices.Contains(roots, pkg) || pkg == "metrics"
}

func find(rules []rule, name string) (rule, bool) {
	i := slices.IndexFunc(rules, func(r rule) bool { return fits(r.of, name) })
	if i < 0 {
		return rule{}, false
	}
	return rules[i], true
}

func checkFloors(list []goPackage) (found []finding) {
	rules := table(floors)
	for _, p := range list {
		pkg := p.rel()
		r, ok := find(rules, pkg)
		if !ok {
			found = append(found, finding{"floors", pkg, pkg, "no floor has a place for this package; see the table in floors_test.go"})
			continue
		}
		for _, imported := range p.Imports {
			rel, inside := strings.CutPrefix(imported, module+"/")
			if inside && !mayImport(r, pkg, rel) {
				found = append(found, finding{"floors", pkg, rel, "may import only " + strings.Join(r.list, " ") + " (floor " + r.why + ")"})
			}
		}
	}
	return found
}

func checkOutside(list []goPackage) (found []finding) {
	rules := table(outside)
	for i := range rules {
		rules[i].of += "/..."
	}
	for _, p := range list {
		for _, imported := range p.Imports {
			if strings.HasPrefix(imported, module+"/") {
				continue
			}
			if r, ok := find(rules, imported); ok && !anyFits(r.list, p.rel()) {
				found = append(found, finding{"imports", p.rel(), imported, r.why})
			}
			standard := !strings.Contains(strings.SplitN(imported, "/", 2)[0], ".")
			if p.rel() == "node/lifecycle" && !standard && !anyFits(pure, imported) {
				found = append(found, finding{"imports", p.rel(), imported, "the pod machine is pure: std, core/v1 and apimachinery only"})
			}
		}
	}
	return found
}

func TestFloors(t *testing.T) { report(t, checkFloors(ours(t)), "floors") }

func TestImportsFromOutside(t *testing.T) { report(t, checkOutside(ours(t)), "imports") }

// TestFloorsFindWhatIsWrong plants imports that must and must not pass.
func TestFloorsFindWhatIsWrong(t *testing.T) {
	for _, tc := range []struct {
		pkg, imports string
		ok           bool
	}{
		{"runtime", "internal/tasks", true},
		{"runtime/cri", "runtime", true},
		{"runtime/runtimetest", "runtime/cri", true},
		{"runtime", "runtime/cri", false}, // a root never imports its subpackages
		{"runtime/cri", "volume", false},  // siblings
		{"volume", "runtime", false},
		{"volume/plugins", "volume", true},
		{"internal/tasks", "runtime", false},
		{"node/lifecycle", "runtime", true},
		{"node/lifecycle", "runtime/cri", false},
		{"node/lifecycle", "node", false},
		{"node/podactor", "node/lifecycle", true},
		{"node/podactor", "node", false},
		{"node", "node/podactor", true},
		{"node", "node/source", false},
		{"node", "runtime/cri", false},
		{"node/source", "node", true},
		{"node/source", "node/source/file", true},
		{"node/source/file", "node/source", true},
		{"node/source", "node/server", false},
		{"node/server", "runtime/logs", false},
		{"node/wire", "node/source", true},
		{"node/wire", "runtime/cri", true},
		{"node/wire", "node/wire/x", true},
		{"node/wire", "metrics", false},
		{"node/cluster", "node/wire", true},
		{"node/cluster", "node/nodefx", false},
		{"node/clusterfx", "node/cluster", true},
		{"node/wire", "node/nodefx", false},
		{"node/wire", "internal/fxrun", false},
		{"runtime/runtimefx", "internal/fxrun", true},
		{"metrics", "node", false},
		{"metrics/nodemetrics", "node", true},
		{"metrics/nodemetrics", "node/wire", false},
		{"node/nodefx", "node/wire", true},
		{"runtime/runtimefx", "node", true},
		{"node/nodefx", "cmd/kubelet/app", false},
		{"cmd/kubelet/app", "node/nodefx", true},
		{"examples/no-fx", "node/wire", true},
		{"examples/no-fx", "internal/tasks", false},
		{"attic", "runtime", false}, // no floor
	} {
		found := checkFloors([]goPackage{{ImportPath: module + "/" + tc.pkg, Imports: []string{"fmt", module + "/" + tc.imports}}})
		if (len(found) == 0) != tc.ok {
			t.Errorf("%s imports %s: found %v, want it to pass: %v", tc.pkg, tc.imports, found, tc.ok)
		}
	}
	for _, tc := range []struct {
		pkg, imports string
		ok           bool
	}{
		{"runtime/cri", "k8s.io/cri-api/pkg/apis/runtime/v1", true},
		{"runtime/images", "k8s.io/cri-api/pkg/apis/runtime/v1", false},
		{"node/nodefx", "go.uber.org/fx", true},
		{"node/wire", "go.uber.org/fx", false},
		{"node", "go.uber.org/fx/fxevent", false},
		{"node/wire", "go.uber.org/multierr", true},
		{"cmd/kubelet/app", "github.com/spf13/pflag", true},
		{"cmd/kubelet/app", "go.uber.org/fx", false},
		{"examples/vendor-distro", "go.uber.org/fx", false},
		{"examples/vendor-distro", "github.com/spf13/pflag", true},
		{"examples/vendor-distro", "github.com/spf13/cobra", false},
		{"node", "github.com/spf13/pflag", false},
		{"node/objects", "k8s.io/client-go/tools/cache", true},
		{"node/objects", "k8s.io/client-go/kubernetes/scheme", false},
		{"probe", "k8s.io/client-go/tools/cache", false},
		{"runtime", "testing", false},
		{"runtime", "testing/synctest", false},
		{"runtime/runtimetest", "testing", true},
		{"node/lifecycle", "k8s.io/api/core/v1", true},
		{"node/lifecycle", "k8s.io/apimachinery/pkg/types", true},
		{"node/lifecycle", "k8s.io/api/apps/v1", false},
		{"node/lifecycle", "github.com/google/go-cmp/cmp", false},
		{"node/lifecycle", "slices", true},
	} {
		found := checkOutside([]goPackage{{ImportPath: module + "/" + tc.pkg, Imports: []string{tc.imports}}})
		if (len(found) == 0) != tc.ok {
			t.Errorf("%s imports %s: found %v, want it to pass: %v", tc.pkg, tc.imports, found, tc.ok)
		}
	}
}
