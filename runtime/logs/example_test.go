package logs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"nodekit.dev/runtime/logs"
)

func ExampleCopy() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "0.log")
	_ = os.WriteFile(path, []byte(`2026-05-01T10:00:00Z stdout F starting
2026-05-01T10:00:01Z stdout P listening on
2026-05-01T10:00:01Z stderr F a warning
2026-05-01T10:00:01Z stdout F  port 80
`), 0o640)

	err := logs.Copy(context.Background(), logs.Request{
		Path:    path,
		Options: logs.Options{Tail: logs.Last(2)},
		Stdout:  os.Stdout,
		Stderr:  os.Stdout,
	})
	fmt.Println(err)
	// Output:
	// a warning
	// listening on port 80
	// <nil>
}
