package manifests

import (
	"os"
	"strings"
	"testing"
	"time"
)

// A file whose read blocks, as /proc/kmsg does, must not hold up the folder.
func TestReadThatBlocksEnds(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	defer r.Close()
	if _, err := readAll(r, 10*time.Millisecond); err == nil || !strings.Contains(err.Error(), "took longer than") {
		t.Errorf("readAll = %v, want an error that says it took too long", err)
	}
}
