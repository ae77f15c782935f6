package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const budgetsFile = "testdata/budgets.txt"

// hardCaps hold whatever the committed file says: an editor of that file can
// not go beyond them (DESIGN.md, Floors).
var hardCaps = map[string]int{
	"node/lifecycle": 100, "node": 120, "probe": 200, "shutdown": 200, "credentials": 200,
}

// weight counts the packages outside of the standard library that importing p
// drags along.
func weight(p goPackage, all map[string]goPackage) (n int) {
	for _, dep := range p.Deps {
		if d, ok := all[dep]; ok && !d.Standard {
			n++
		}
	}
	return n
}

func TestBudgets(t *testing.T) {
	all, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, p := range ours(t) {
		if isPublic(p) {
			counts[p.rel()] = weight(p, all)
		}
	}
	for _, problem := range overCap(counts) {
		t.Error(problem)
	}
	if *update {
		writeBudgets(t, counts)
		return
	}
	budgets, err := readBudgets()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range overBudget(counts, budgets) {
		t.Error(problem)
	}
}

func overCap(counts map[string]int) (problems []string) {
	for pkg, limit := range hardCaps {
		if counts[pkg] > limit {
			problems = append(problems, fmt.Sprintf("%s drags %d packages along, its hard limit is %d (DESIGN.md, Floors)", pkg, counts[pkg], limit))
		}
	}
	return problems
}

func overBudget(counts, budgets map[string]int) (problems []string) {
	const how = "if it is worth it: go test ./internal/policy -run TestBudgets -update, and say why in the commit"
	for pkg, n := range counts {
		budget, known := budgets[pkg]
		switch {
		case !known:
			problems = append(problems, fmt.Sprintf("%s (%d packages) has no budget yet; %s", pkg, n, how))
		case n > budget:
			problems = append(problems, fmt.Sprintf("%s drags %d packages along, its budget is %d (see go list -deps ./%s); %s", pkg, n, budget, pkg, how))
		}
	}
	for pkg := range budgets {
		if _, ok := counts[pkg]; !ok {
			problems = append(problems, fmt.Sprintf("%s: %s is no public package any more; %s", budgetsFile, pkg, how))
		}
	}
	slices.Sort(problems)
	return problems
}

func TestBudgetsFindWhatGrew(t *testing.T) {
	counts := map[string]int{"a": 5, "b": 5, "new": 1, "node": 121}
	found := append(overBudget(counts, map[string]int{"a": 5, "b": 4, "gone": 1, "node": 200}), overCap(counts)...)
	for i, want := range []string{"b drags 5", "new (1 packages) has no budget", "gone is no public", "node drags 121"} {
		if len(found) != 4 || !strings.Contains(found[i], want) {
			t.Errorf("found %q, want %q", found, want)
		}
	}
}

func readBudgets() (map[string]int, error) {
	text, err := os.ReadFile(budgetsFile)
	if err != nil {
		return nil, err
	}
	budgets := map[string]int{}
	for _, r := range table(string(text)) {
		n, err := strconv.Atoi(strings.Join(r.list, " "))
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", budgetsFile, r.of, err)
		}
		budgets[r.of] = n
	}
	return budgets, nil
}

func writeBudgets(t *testing.T, counts map[string]int) {
	t.Helper()
	var lines []string
	for pkg, n := range counts {
		lines = append(lines, fmt.Sprintf("%-28s %d\n", pkg, n))
	}
	slices.Sort(lines)
	head := "# Packages outside of the standard library that importing a public package drags\n" +
		"# along. Growth fails until someone writes this file anew (see doc.go).\n"
	if err := os.WriteFile(budgetsFile, []byte(head+strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestRequires holds the direct requirements of the main module to a list.
func TestRequires(t *testing.T) {
	cmd := exec.Command("go", "mod", "edit", "-json")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
		Replace []struct{ Old struct{ Path string } }
	}
	if err := json.NewDecoder(bytes.NewReader(out)).Decode(&mod); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/requires.txt")
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{}
	for _, r := range table(string(text)) {
		allowed[r.of] = true
	}
	for _, r := range mod.Require {
		if !r.Indirect && !allowed[r.Path] {
			t.Errorf("go.mod requires %s: is it needed? If so, a line in docs/adr/0002-dependencies.md that says why our own code would be worse, and in testdata/requires.txt", r.Path)
		}
		delete(allowed, r.Path)
	}
	for path := range allowed {
		t.Errorf("testdata/requires.txt: go.mod does not require %s any more", path)
	}
	for _, r := range mod.Replace {
		t.Errorf("go.mod replaces %s: those who import this module would have to do the same", r.Old.Path)
	}
}
