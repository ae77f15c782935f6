package seams

import (
	"fmt"
	"strings"
)

const head = "# Seams\n\n" +
	"Where forks of the kubelet patch, and what to use here instead. Written by `make docs` from internal/seams; a test fails when\n" +
	"this page is stale or names what does not exist. How to use each kind of seam: [how-to/seams.md](how-to/seams.md).\n\n" +
	"`Replace` and `Wrap` of [node/nodefx](../node/nodefx) take %s.\n\n"

// Page is docs/seams.md. Replaceable names the interfaces that nodefx replaces.
func Page(replaceable []string) string {
	var out strings.Builder
	quoted := make([]string, len(replaceable))
	for i, name := range replaceable {
		quoted[i] = "`" + strings.Replace(name, "podactor.", "node.", 1) + "`" // as vendors import it
	}
	fmt.Fprintf(&out, head, strings.Join(quoted, ", "))
	for _, s := range Table() {
		fmt.Fprintf(&out, "## %s\n\n| patched or asked for | seam | in Go | stage | test | example |\n|---|---|---|---|---|---|\n", s.Title)
		for _, r := range s.Rows {
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s |\n", r.Patch, r.Seam, names(r.Uses), r.stage(), names([]string{r.Test}), example(r.Example))
		}
		out.WriteString("\n")
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// stage says whether the seam is there, and what is still to come.
func (r Row) stage() string {
	switch {
	case r.Pending == "":
		return "done"
	case r.Done == "":
		return "pending: " + string(r.Pending)
	}
	return "done; the rest: " + string(r.Pending)
}

func names(list []string) string {
	var out []string
	for _, name := range list {
		if name != "" {
			out = append(out, "`"+name+"`")
		}
	}
	return strings.Join(out, ", ")
}

func example(file string) string {
	if file == "" {
		return ""
	}
	return fmt.Sprintf("[%s](../examples/%s)", file, file)
}
