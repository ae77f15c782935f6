package policy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// topLevel is all that stands in the repository's root. A further folder needs
// a written reason in docs/adr.
var topLevel = map[string]bool{ // true: must be there
	"node": true, "runtime": true, "probe": true, "volume": true, "resources": true, "shutdown": true, "metrics": true, "credentials": true,
	"cmd": true, "examples": true, "docs": true, "internal": true, "test": true,
	"go.mod": true, "go.sum": true, "LICENSE": true, "Makefile": true, "README.md": true, "CONTRIBUTING.md": true, ".ci": true,
	".gitignore": false, ".golangci.yml": false, ".github": false,
}

// products are the folders whose root is a package.
var products = []string{"node", "runtime", "probe", "volume", "resources", "shutdown", "metrics", "credentials"}

func TestTopLevel(t *testing.T) {
	names, err := files()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, name := range names {
		top, _, _ := strings.Cut(name, "/")
		seen[top] = true
	}
	for top := range seen {
		if _, ok := topLevel[top]; !ok {
			t.Errorf("%s stands at the top level: it needs a written reason in docs/adr, and a place in layout_test.go", top)
		}
	}
	for top, must := range topLevel {
		if must && !seen[top] {
			t.Errorf("%s is missing at the top level", top)
		}
	}
	for _, folder := range products {
		if !slices.Contains(names, folder+"/doc.go") {
			t.Errorf("%s has no doc.go that says what it is, or what will live there", folder)
		}
	}
}

// unwanted must not be in any committed file. The patterns are put together
// here so that this file does not match them.
var unwanted = map[string]*regexp.Regexp{
	"a path of the machine it was written on": regexp.MustCompile(`(^|[\s"'(=:` + "`" + `])/` + `work/(main|shared|tmp)|/` + `root/go/`),
	"the name of a private tool":              regexp.MustCompile(`(?i)farm` + `[-_ ]studio|duplicates` + ` tool`),
	"a conflict marker":                       regexp.MustCompile(`(?m)^(<{7} |>{7} )`),
}

func TestNoUnwantedWords(t *testing.T) {
	names, err := files()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for what, pattern := range unwanted {
			if at := pattern.FindIndex(text); at != nil {
				line := 1 + strings.Count(string(text[:at[0]]), "\n")
				t.Errorf("%s:%d has %s in it: %q", name, line, what, text[at[0]:at[1]])
			}
		}
	}
}

func TestUnwantedWordsAreFound(t *testing.T) {
	for text, want := range map[string]bool{
		"see /" + "work/main/x": true, "`/" + "work/shared`": true, "network/" + "work/main": false, "/" + "workload/main": false,
		"Farm" + "-Studio": true, "duplicates are fine": false, "<<<<<<" + "< HEAD": true,
	} {
		found := false
		for _, pattern := range unwanted {
			found = found || pattern.MatchString(text)
		}
		if found != want {
			t.Errorf("%q: found %v", text, found)
		}
	}
}
