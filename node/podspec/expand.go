package podspec

import "strings"

// expand replaces each $(NAME) that lookup knows. $$ stands for one $, so that
// $$(NAME) stays $(NAME); what is unknown or not closed stays as it is.
func expand(text string, lookup func(name string) (string, bool)) string {
	if !strings.Contains(text, "$") {
		return text
	}
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		text = expandOne(&out, rest, lookup)
	}
}

// expandOne writes what the "$" before rest stands for and returns the
// text behind it.
func expandOne(out *strings.Builder, rest string, lookup func(string) (string, bool)) string {
	if after, ok := strings.CutPrefix(rest, "$"); ok {
		out.WriteByte('$')
		return after
	}
	if inner, ok := strings.CutPrefix(rest, "("); ok {
		if name, after, closed := strings.Cut(inner, ")"); closed {
			if v, known := lookup(name); known {
				out.WriteString(v)
			} else {
				out.WriteString("$(" + name + ")")
			}
			return after
		}
	}
	out.WriteByte('$')
	return rest
}

func expandAll(texts []string, lookup func(string) (string, bool)) []string {
	if texts == nil {
		return nil
	}
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = expand(text, lookup)
	}
	return out
}
