package policy

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// lintConfig is what of .golangci.yml has its twin here.
type lintConfig struct {
	Linters struct {
		Settings struct {
			Depguard struct {
				Rules map[string]struct {
					Deny []struct{ Pkg, Desc string }
				}
			}
			Forbidigo struct {
				Forbid []struct{ Pattern, Msg string }
			}
		}
	}
}

// TestLintersAgree wants the linters, which editors run, to ban what the rules
// here ban, in the same words. Where a ban holds is told by each in its own
// way, and not compared.
func TestLintersAgree(t *testing.T) {
	text, err := os.ReadFile(root + "/.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config lintConfig
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	denied := map[string]string{}
	for _, rule := range config.Linters.Settings.Depguard.Rules {
		for _, d := range rule.Deny {
			denied[d.Pkg] = d.Desc
		}
	}
	banned := map[string]string{}
	for _, r := range table(outside) {
		banned[r.of] = r.why
	}
	for _, pkg := range slices.Sorted(maps.Keys(banned)) {
		if denied[pkg] != banned[pkg] {
			t.Errorf(".golangci.yml denies %s with %q, floors_test.go with %q", pkg, denied[pkg], banned[pkg])
		}
		delete(denied, pkg)
	}
	for pkg := range denied {
		t.Errorf(".golangci.yml denies %s, floors_test.go does not", pkg)
	}
	for _, b := range bans() {
		if b.pkg == "log/slog" { // sloglint's no-global
			continue
		}
		told := false
		for _, f := range config.Linters.Settings.Forbidigo.Forbid {
			told = told || f.Msg == b.instead && (b.pkg == "" || strings.Contains(f.Pattern, b.pkg[strings.LastIndex(b.pkg, "/")+1:]))
		}
		if !told {
			t.Errorf(".golangci.yml does not forbid %s of %q with %q", strings.Join(b.names, ", "), b.pkg, b.instead)
		}
	}
}
