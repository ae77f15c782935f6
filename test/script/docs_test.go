package script

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	kubelet "nodekit.dev/cmd/kubelet/app"
	"nodekit.dev/cmd/kubelet/config"
	nodectl "nodekit.dev/cmd/nodectl/app"
)

// root is the repository's, seen from this package's directory.
const root = "../.."

// TestGeneratedDocs holds the parts of docs that a program writes: what stands
// between a line "<!-- generated: NAME -->" and the next "<!-- end -->".
func TestGeneratedDocs(t *testing.T) {
	generated := map[string]string{
		"kubelet --help": fenced(output(t, func(ctx context.Context, args []string, out, errs io.Writer) int {
			return kubelet.Run(ctx, args, out, errs)
		}, "--help")),
		"nodectl --help": fenced(output(t, nodectl.Run, "--help")),
		"fields":         bullets(config.ActedOn()),
		"gates":          gates(t),
	}
	for _, file := range []string{"docs/cli.md", "docs/configuration.md"} {
		path := filepath.Join(root, file)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := regenerate(t, string(text), generated)
		if want == string(text) {
			continue
		}
		if !*update {
			t.Errorf("%s is not up to date: run make update", file)
			continue
		}
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name := range generated {
		t.Errorf("no document shows %q", name)
	}
}

// regenerate writes what is generated into its places, and crosses it off.
func regenerate(t *testing.T, text string, generated map[string]string) string {
	section := regexp.MustCompile(`(?s)(<!-- generated: ([^>]+) -->\n).*?(<!-- end -->)`)
	return section.ReplaceAllStringFunc(text, func(found string) string {
		parts := section.FindStringSubmatch(found)
		body, ok := generated[parts[2]]
		if !ok {
			t.Errorf("nothing generates %q", parts[2])
		}
		delete(generated, parts[2])
		return parts[1] + body + parts[3]
	})
}

func fenced(text string) string { return "```\n" + strings.TrimRight(text, "\n") + "\n```\n" }

func bullets(items []string) string {
	return "`" + strings.Join(items, "`, `") + "`\n"
}

// gates are those that change what nodekit does.
func gates(t *testing.T) string {
	all, err := config.StockGates()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	out.WriteString("| gate | stage | default |\n|---|---|---|\n")
	for _, g := range all.List() {
		if g.Settable() {
			fmt.Fprintf(&out, "| %s | %s | %t |\n", g.Name, g.Stage, g.Default)
		}
	}
	return out.String()
}

// TestBehaviourNamesItsTests: a difference without a test is a claim.
func TestBehaviourNamesItsTests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/behaviour.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "| ") || cells[0] == " behaviour " {
			continue
		}
		rows++
		refs := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(cells) != 5 || len(refs) == 0 {
			t.Errorf("no test, or not five cells: %s", line)
		}
		for _, ref := range refs {
			if !exists(t, ref[1]) {
				t.Errorf("there is no test %s", ref[1])
			}
		}
	}
	if rows < 10 {
		t.Errorf("only %d rows were read", rows)
	}
}

// exists looks for a file, or for package:TestName.
func exists(t *testing.T, ref string) bool {
	t.Helper()
	pkg, name, isGo := strings.Cut(ref, ":")
	if !isGo {
		_, err := os.Stat(filepath.Join(root, ref))
		return err == nil
	}
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("\nfunc "+name+"(")) {
			return true
		}
	}
	return false
}

// output is what a command prints.
func output(t *testing.T, run func(context.Context, []string, io.Writer, io.Writer) int, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(t.Context(), args, &out, &errs); code != 0 {
		t.Fatalf("%v: exit code %d, %s", args, code, &errs)
	}
	return out.String()
}
