package policy

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// finding is one place where a rule is not held.
type finding struct {
	rule  string // as in allowed.txt
	place string // package or file
	thing string // what is wrong there: a name, an import, a call
	text  string // where exactly, and what to do instead
}

func (f finding) key() string { return strings.Join([]string{f.rule, f.place, f.thing}, " ") }

// report fails the test for what is found and not allowed, and for what is
// allowed under these rules and not found.
func report(t *testing.T, found []finding, rules ...string) {
	t.Helper()
	allowed, err := readAllowed()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, f := range found {
		if _, ok := allowed[f.key()]; ok {
			used[f.key()] = true
			continue
		}
		t.Errorf("%s: %s: %s", f.place, f.thing, f.text)
	}
	for key := range allowed {
		rule, _, _ := strings.Cut(key, " ")
		for _, mine := range rules {
			if rule == mine && !used[key] {
				t.Errorf("testdata/allowed.txt: nothing needs %q any more; remove it", key)
			}
		}
	}
}

// readAllowed reads lines of "rule place thing: reason".
func readAllowed() (map[string]string, error) {
	text, err := os.ReadFile("testdata/allowed.txt")
	if err != nil {
		return nil, err
	}
	allowed := map[string]string{}
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, reason, _ := strings.Cut(line, ": ")
		fields := strings.Fields(key)
		if len(fields) != 3 || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("testdata/allowed.txt:%d: want \"rule place thing: reason\"", i+1)
		}
		allowed[strings.Join(fields, " ")] = reason
	}
	return allowed, nil
}

// texts are the findings as "place thing", for the tests of the rules.
func texts(found []finding) string {
	var list []string
	for _, f := range found {
		list = append(list, f.place+" "+f.thing)
	}
	return strings.Join(list, "\n")
}
