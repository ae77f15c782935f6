package manifests

import (
	"os"
	"path/filepath"
	"testing"
)

// A folder that is a link whose target is away (a disk that is not mounted
// yet) is an outage: it must not read as "no pods wanted".
func TestFolderThatIsADanglingLink(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "manifests")
	if names, err := List(link); err != nil || names != nil {
		t.Errorf("no folder at all: %v, %v; want no manifests", names, err)
	}
	if err := os.Symlink(filepath.Join(dir, "away"), link); err != nil {
		t.Fatal(err)
	}
	if names, err := List(link); err == nil {
		t.Errorf("a dangling link reads as %v without an error", names)
	}
}
