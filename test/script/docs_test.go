package script

import (
	"bytes"
	"context"
	"encoding/json"
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
		"fields":         fields(t),
		"flags":          ownFlags(),
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

// fields is the table of all fields of KubeletConfiguration.
func fields(t *testing.T) string {
	kc, err := config.Default()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(kc)
	if err != nil {
		t.Fatal(err)
	}
	var defaults map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&defaults); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	out.WriteString("| field | default | flag | nodekit |\n|---|---|---|---|\n")
	for _, f := range config.Fields() {
		flag := config.FlagOf(f.Path)
		if flag != "" {
			flag = "`--" + flag + "`"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", f.Path, defaultAt(defaults, f.Path), flag, state(f.State, f.Text))
	}
	return out.String()
}

// defaultAt is the default of a field as a file would have it.
func defaultAt(doc map[string]any, path string) string {
	parent, rest, nested := strings.Cut(path, ".")
	value, ok := doc[parent]
	if !ok {
		return ""
	}
	if nested {
		below, _ := value.(map[string]any)
		return defaultAt(below, rest)
	}
	text, err := json.Marshal(value)
	if err != nil || string(text) == "{}" {
		return ""
	}
	return "`" + strings.Trim(string(text), `"`) + "`"
}

// ownFlags is the table of the flags that no field stands for.
func ownFlags() string {
	var out strings.Builder
	out.WriteString("| flag | nodekit |\n|---|---|\n")
	for _, f := range config.Flags() {
		if f.Field == "" {
			fmt.Fprintf(&out, "| `--%s` | %s |\n", f.Name, state(f.State, f.Text))
		}
	}
	return out.String()
}

func state(s config.State, text string) string {
	switch s {
	case config.Acts:
		return "acts on it"
	case config.InCluster:
		return "acts on it in a cluster; says so at start where it stands alone"
	case config.Later:
		return "not yet, with a warning: " + text
	case config.Moot:
		return "nothing to do: " + text
	case config.Differs:
		return "otherwise: " + text
	case config.Refused:
		return "refused: " + text
	}
	return string(s)
}

// gates are those that reach a node, with what nodekit makes of them.
func gates(t *testing.T) string {
	all, err := config.StockGates()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	out.WriteString("| gate | stage | default | nodekit |\n|---|---|---|---|\n")
	for _, g := range all.List() {
		text := ""
		switch {
		case g.Elsewhere:
			continue
		case g.Part != "":
			text = "not yet: " + g.Part
		case g.Locked:
			text = "locked"
		case g.Fixed:
			text = "always as by default"
		default:
			text = "acts on it"
		}
		fmt.Fprintf(&out, "| %s | %s | %t | %s |\n", g.Name, g.Stage, g.Default, text)
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
