package plugins

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"nodekit.dev/internal/reasoned"
)

func TestCheckPath(t *testing.T) {
	long := strings.Repeat("x", 256)
	for path, want := range map[string]string{
		"a":                        "",
		"a/b.c/d":                  "",
		".hidden":                  "",
		"a..b":                     "",
		"dir/..x":                  "", // below a directory it is no name of ours
		"./a":                      "",
		"":                         `invalid path: must not be empty: ""`,
		"/etc/passwd":              "invalid path: must be relative path: /etc/passwd",
		"../x":                     "invalid path: must not contain '..': ../x",
		"a/../../x":                "invalid path: must not contain '..': a/../../x",
		"a/..":                     "invalid path: must not contain '..': a/..",
		"..data":                   "invalid path: must not start with '..': ..data",
		"..data/x":                 "invalid path: must not start with '..': ..data/x",
		"./..data":                 "invalid path: must not start with '..': ./..data",
		"a/" + long:                "invalid path: filenames must be less than or equal to 255 characters",
		strings.Repeat("a/", 2049): "invalid path: must be less than or equal to 4096 characters",
		".":                        `invalid path: names no file: "."`,
		"a\x00b":                   `invalid path: names no file: "a\x00b"`,
	} {
		got := ""
		if err := checkPath(path); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.40q: %q, want %q", path, got, want)
		}
	}
}

func TestCleanPayload(t *testing.T) {
	clean, err := payload{"./a//b": {data: []byte("1")}, "c": {}}.clean()
	if err != nil || string(clean["a/b"].data) != "1" || !slices.Equal(clean.top(), []string{"a", "c"}) {
		t.Errorf("%v, %v", clean, err)
	}
	_, err = payload{"a": {}, "a/b": {}}.clean()
	if err == nil || err.Error() != "invalid path: a is a file, and a/b is below it" {
		t.Errorf("%v", err)
	}
}

type missing string

func (m missing) Error() string  { return string(m) }
func (m missing) NotFound() bool { return true }

func TestJoined(t *testing.T) {
	a, b := missing("a"), errors.New("b")
	if joined(nil) != nil {
		t.Error("no errors are an error")
	}
	for want, list := range map[string][]error{"a": {a}, "[a, b]": {a, b}, "b": {b, b}} {
		if got := joined(list).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if !reasoned.NotFound(joined([]error{b, a})) {
		t.Error("the class of one of several errors was lost")
	}
}
