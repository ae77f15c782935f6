package beneath

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOpenFile(t *testing.T) {
	root, dir, outside := tree(t)
	for path, text := range map[string]string{
		filepath.Join(dir, "a/b/log"): "inside", filepath.Join(outside, "secret/key"): "outside",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"a/b/link": "log", "a/b/out": filepath.Join(outside, "secret/key")} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for rel, want := range map[string]error{
		"a/b/log":            nil,
		"./a//b/log":         nil,
		"a/b/link":           ErrSymlink,
		"a/b/out":            ErrSymlink,
		"a/in/log":           ErrSymlink,
		"up/secret/key":      ErrSymlink,
		"../outside/secret/": ErrEscapes,
		"a/../a/b/log":       ErrEscapes,
		"a/b/none":           fs.ErrNotExist,
		"a/b/log/x":          unix.ENOTDIR,
		"a/b":                ErrNotRegular,
		"":                   ErrNotRegular,
		"pipe":               ErrNotRegular, // and it does not block
	} {
		file, err := OpenFile(root, rel)
		if !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", rel, err, want)
		}
		if err != nil {
			continue
		}
		if text, err := io.ReadAll(file); string(text) != "inside" {
			t.Errorf("%q: read %q, %v", rel, text, err)
		}
		file.Close()
	}
}
