package podspec

import (
	"fmt"
	"strings"
)

// envFileValue finds a variable in an environment file, of which the API
// defines a strict form: lines of NAME='value', where the value may go over
// several lines and is taken as it is; comments from "#" to the end of a line;
// empty lines. The first assignment of the name counts. Empty: it has none.
//
// What stands behind the variable is not looked at, as with the stock kubelet:
// the container that writes the file may not be done with it.
func envFileValue(content []byte, name string) (string, error) {
	f := envFile{rest: string(content)}
	for f.rest != "" {
		got, text, err := f.assignment()
		if err != nil {
			return "", err
		}
		if got == name {
			return text, nil
		}
	}
	return "", nil
}

// envFile is what is left to read of a file.
type envFile struct {
	rest string
	line int // the number of the line that was read last
}

// next takes one line off, without its end.
func (f *envFile) next() string {
	line, rest, _ := strings.Cut(f.rest, "\n")
	f.rest = rest
	f.line++
	return strings.TrimSuffix(line, "\r")
}

// assignment reads one line, or as many as the value goes over. The name is
// empty for a line that assigns nothing.
func (f *envFile) assignment() (name, text string, err error) {
	line := strings.TrimLeft(f.next(), " \t")
	if line == "" || line[0] == '#' {
		return "", "", nil
	}
	name, text, found := strings.Cut(line, "=")
	switch {
	case !found:
		return "", "", f.wrong("missing '='")
	case strings.TrimRight(name, " \t") == "":
		return "", "", f.wrong("empty variable name")
	case strings.TrimRight(name, " \t") != name:
		return "", "", f.wrong("whitespace before '=' is not allowed")
	case strings.TrimLeft(text, " \t") != text:
		return name, "", nil // as in a shell, where the value would be a command
	}
	text, quoted := strings.CutPrefix(text, "'")
	if !quoted {
		return "", "", f.wrong("value must be enclosed in single quotes")
	}
	text, err = f.quoted(text)
	return name, text, err
}

// quoted reads up to the closing quote.
func (f *envFile) quoted(line string) (string, error) {
	start := f.line
	var text strings.Builder
	for {
		before, after, closed := strings.Cut(line, "'")
		text.WriteString(before)
		if closed {
			if after = strings.TrimLeft(after, " \t"); after != "" && after[0] != '#' {
				return "", f.wrong("unexpected content after closing quote")
			}
			return text.String(), nil
		}
		if f.rest == "" {
			return "", fmt.Errorf("invalid environment variable format starting at line %d: unclosed single quote", start)
		}
		text.WriteByte('\n')
		line = f.next()
	}
}

func (f *envFile) wrong(what string) error {
	return fmt.Errorf("invalid environment variable format at line %d: %s", f.line, what)
}
