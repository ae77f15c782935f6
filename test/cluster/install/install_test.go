package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The pinned versions are those of the modules next door.
func TestVersions(t *testing.T) {
	for _, c := range []component{kubernetes(), etcd()} {
		text, err := os.ReadFile(filepath.Join("..", c.folder, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "require "+c.module+" "+c.version+"\n") {
			t.Errorf("%s/go.mod does not require %s %s", c.folder, c.module, c.version)
		}
	}
}

// A program of another module is not taken for the one that is pinned.
func TestCheck(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := etcd()
	if err := c.check(dir); err == nil {
		t.Error("an empty folder passes")
	}
	if err := os.Symlink(self, filepath.Join(dir, "etcd")); err != nil {
		t.Fatal(err)
	}
	if err := c.check(dir); err == nil || !strings.Contains(err.Error(), "is etcd/go.mod right") {
		t.Errorf("a program that is not etcd passes: %v", err)
	}
}
