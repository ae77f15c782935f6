package serving_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"nodekit.dev/node/server/kubeletapi"
	"nodekit.dev/node/wire/serving"
)

// A container's log, without the times that the runtime puts in front.
func Example() {
	dir, err := os.MkdirTemp("", "logs")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "0.log")
	if err := os.WriteFile(path, []byte("2026-01-02T03:04:05.000000006Z stdout F hello\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	var out bytes.Buffer
	err = serving.ContainerLogs(slog.New(slog.DiscardHandler)).CopyLog(context.Background(), kubeletapi.LogRequest{
		Path: path, Within: dir, Out: &out,
	})
	fmt.Print(out.String(), err, "\n")
	// Output:
	// hello
	// <nil>
}
