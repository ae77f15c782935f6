package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// lifecycleDir is where mutants are planted, as seen from this package.
const lifecycleDir = "../../node/lifecycle"

// mutantSeeds bounds the lives that a mutant has to survive in.
const mutantSeeds = "600"

// TestMutants plants each bug in a copy of node/lifecycle (an overlay of the
// build: the tree stays as it is) and wants the simulation to catch it.
func TestMutants(t *testing.T) {
	if os.Getenv("NODEKIT_MUTATE") == "" {
		t.Skip("takes minutes: make mutate (NODEKIT_MUTATE=1)")
	}
	sound := mutant{name: "none", file: "doc.go", old: "package lifecycle\n", new: "package lifecycle\n"}
	if broken, by, err := sound.plant(t.TempDir()); broken || err != nil {
		t.Fatalf("without any bug: %s %v", by, err)
	}
	for _, m := range mutants() {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			caught, by, err := m.plant(t.TempDir())
			switch {
			case err != nil:
				t.Fatal(err)
			case !caught:
				t.Errorf("SURVIVED: %s (%s: %q for %q)", m.breaks, m.file, m.new, m.old)
			default:
				t.Logf("caught: %s", by)
			}
		})
	}
}

// TestMutantsFit holds that each bug can still be planted, which needs no build.
func TestMutantsFit(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mutants() {
		if names[m.name] {
			t.Errorf("two mutants are called %q", m.name)
		}
		names[m.name] = true
		if _, err := m.source(); err != nil {
			t.Error(err)
		}
	}
}

// source is the file with the bug in it.
func (m mutant) source() (string, error) {
	text, err := os.ReadFile(filepath.Join(lifecycleDir, m.file))
	if err != nil {
		return "", fmt.Errorf("mutant %q: %w", m.name, err)
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		return "", fmt.Errorf("mutant %q: %q occurs %d times in %s, not once: write the mutant anew", m.name, m.old, n, m.file)
	}
	return strings.Replace(string(text), m.old, m.new, 1), nil
}

// plant builds the simulation on the bug and runs it. It tells which rule broke.
func (m mutant) plant(dir string) (caught bool, by string, err error) {
	source, err := m.source()
	if err != nil {
		return false, "", err
	}
	overlay, err := m.overlay(dir, source)
	if err != nil {
		return false, "", err
	}
	binary := filepath.Join(dir, "sim.test")
	build := exec.Command("go", "test", "-c", "-ldflags", "-s -w", "-overlay", overlay, "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		return false, "", fmt.Errorf("mutant %q does not build: %w\n%s", m.name, err, out)
	}
	out, err := exec.Command(binary, "-test.run", "^TestSim$", "-test.timeout", "5m", "-quick", "-seeds", mutantSeeds).CombinedOutput()
	if err == nil {
		return false, "", nil
	}
	return true, firstStory(string(out)), nil
}

func (m mutant) overlay(dir, source string) (string, error) {
	original, err := filepath.Abs(filepath.Join(lifecycleDir, m.file))
	if err != nil {
		return "", err
	}
	planted := filepath.Join(dir, m.file)
	if err := os.WriteFile(planted, []byte(source), 0o600); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {original: planted}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, text, 0o600)
}

// firstStory finds the line that names the broken rule.
func firstStory(out string) string {
	for line := range strings.SplitSeq(out, "\n") {
		if _, story, found := strings.Cut(line, "seed "); found {
			return "seed " + story[:min(len(story), 160)]
		}
	}
	return out[:min(len(out), 400)]
}
