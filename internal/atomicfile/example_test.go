package atomicfile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"nodekit.dev/internal/atomicfile"
)

func Example() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "state")

	_ = atomicfile.WriteChecked(path, []byte("cpus 0-3"), 0o600)
	_ = os.Truncate(path, 90) // a crash tears the file

	_, err := atomicfile.ReadChecked(path)
	var damaged *atomicfile.DamagedError
	if errors.As(err, &damaged) {
		kept, _ := atomicfile.SetAside(path, "damaged")
		fmt.Println(damaged.Why, "->", filepath.Base(kept))
	}
	// Output: checksum does not match (torn or edited) -> state.damaged
}
