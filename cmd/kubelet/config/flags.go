package config

import (
	_ "embed"
	"strings"
)

// Flag is one flag of the stock kubelet.
type Flag struct {
	Name string
	// Type is as pflag shows it: string, int32, duration, mapStringString, ...
	Type string
	// Default is that of a flag without a field; others have the field's.
	Default string
	// Field is the path in KubeletConfiguration that the flag sets; empty: none.
	Field string
	// State and Text are the field's, or the flag's own where it has none.
	State State
	Text  string
	// Deprecated is what a use of the flag is answered with; empty: nothing.
	Deprecated string
	Usage      string
	// Theme is the heading that it stands under in --help.
	Theme string
}

// fileInstead is what the stock kubelet says about each flag that sets a field.
const fileInstead = "This parameter should be set via the config file specified by the Kubelet's --config flag. See https://kubernetes.io/docs/tasks/administer-cluster/kubelet-config-file/ for more information."

//go:embed flags.txt
var flagsText string

// Flags returns the flags of the stock kubelet v1.37 but for --help, in the
// order of the table, which is by theme.
func Flags() []Flag {
	var out []Flag
	fields, theme := Fields(), ""
	for line := range strings.Lines(flagsText) {
		if title, ok := strings.CutPrefix(line, "# == "); ok {
			theme = strings.TrimSpace(title)
			continue
		}
		columns := strings.SplitN(strings.TrimSpace(line), " | ", 5)
		if strings.HasPrefix(line, "#") || len(columns) != 5 {
			continue
		}
		out = append(out, newFlag(columns, theme, fields))
	}
	return out
}

func newFlag(columns []string, theme string, fields FieldTable) Flag {
	f := Flag{Name: columns[0], Deprecated: columns[3], Usage: columns[4], Theme: theme}
	f.Type, f.Default, _ = strings.Cut(columns[1], " ")
	switch f.Deprecated {
	case "-":
		f.Deprecated = ""
	case "file":
		f.Deprecated = fileInstead
	}
	if path, ok := strings.CutPrefix(columns[2], "="); ok {
		line, _ := fields.Of(path)
		f.Field, f.State, f.Text = path, line.State, line.Text
		return f
	}
	state, text, _ := strings.Cut(columns[2], " ")
	f.State, f.Text = State(state), text
	return f
}

// FlagOf returns the flag that sets a field, without dashes; "" where none does.
func FlagOf(path string) string {
	for _, f := range Flags() {
		if f.Field == path {
			return f.Name
		}
	}
	return ""
}

// NearestFlag is the flag that a misspelt one was probably meant to be; "" where
// none is near.
func NearestFlag(name string) string {
	known := map[string]bool{}
	for _, f := range Flags() {
		known[f.Name] = true
	}
	return nearest(name, known)
}
