package logs

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"nodekit.dev/internal/beneath"
)

// TestCopyStaysWithin: whoever can write in the log directory, as a pod with a
// hostPath volume there can, gets nothing else read in his name.
func TestCopyStaysWithin(t *testing.T) {
	base := t.TempDir()
	pods := filepath.Join(base, "pods")
	line := raw(1, Stdout, "F", "secret")
	for path, text := range map[string]string{
		"shadow": line, "pods/ns_a_1/app/0.log": raw(1, Stdout, "F", "mine"), "pods/ns_b_2/app/0.log": line,
	} {
		path = filepath.Join(base, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"ns_a_1/app/1.log":                 "../../../shadow",
		"ns_a_1/app/2.log":                 filepath.Join(base, "shadow"),
		"ns_a_1/app/3.log":                 "../../ns_b_2/app/0.log",
		"ns_a_1/other":                     "../ns_b_2/app",
		"ns_c_3":                           "ns_b_2",
		"ns_a_1/app/5.log.20260101-000000": "../../../shadow", // as if it was rotated
	} {
		if err := os.Symlink(target, filepath.Join(pods, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(pods, "ns_a_1/app/4.log"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		"ns_a_1/app/0.log":    nil,
		"ns_a_1/app/1.log":    beneath.ErrSymlink,
		"ns_a_1/app/2.log":    beneath.ErrSymlink,
		"ns_a_1/app/3.log":    beneath.ErrSymlink,
		"ns_a_1/app/4.log":    beneath.ErrNotRegular,
		"ns_a_1/app/5.log":    fs.ErrNotExist,
		"ns_a_1/app/none.log": fs.ErrNotExist,
		"ns_a_1/other/0.log":  beneath.ErrSymlink,
		"ns_c_3/app/0.log":    beneath.ErrSymlink,
		"../shadow":           beneath.ErrEscapes,
	} {
		var out bytes.Buffer
		opened := false
		err := Copy(t.Context(), Request{
			Path: filepath.Join(pods, path), Within: pods, Stdout: &out,
			Opened: func() { opened = out.Len() == 0 },
		})
		if opened != (want == nil) {
			t.Errorf("%s: opened %v, with %v", path, opened, err)
		}
		if !errors.Is(err, want) || out.String() != map[bool]string{true: "mine\n"}[want == nil] {
			t.Errorf("%s: %v, %q, want %v", path, err, out.String(), want)
		}
	}
}
