package manifests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// waits runs Wait and says how it ended: "change", "time" or "stopped".
func waits(w *Watch, atMost time.Duration) <-chan string {
	done := make(chan string, 1)
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errors.New("stopped"))
	start := time.Now()
	go func() {
		defer cancel()
		switch err := w.Wait(ctx, atMost); {
		case err != nil:
			done <- "stopped"
		case time.Since(start) < atMost:
			done <- "change"
		default:
			done <- "time"
		}
	}()
	return done
}

func TestWatch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "objects")
	w := NewWatch(dir, slog.New(slog.DiscardHandler))
	defer w.Close()
	for _, step := range []struct {
		what string
		do   func() error
		want string
	}{
		{"the directory appears", func() error { return os.Mkdir(dir, 0o755) }, "change"},
		{"a file is written", func() error { return os.WriteFile(filepath.Join(dir, "a.yaml"), nil, 0o600) }, "change"},
		{"an editor's file", func() error { return os.WriteFile(filepath.Join(dir, ".a.swp"), nil, 0o600) }, "time"},
		{"a file is removed", func() error { return os.Remove(filepath.Join(dir, "a.yaml")) }, "change"},
		{"nothing", func() error { return nil }, "time"},
	} {
		w.Follow()
		limit := 20 * time.Second
		if step.want == "time" {
			limit = 300 * time.Millisecond
		}
		done := waits(w, limit)
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := <-done; got != step.want {
			t.Errorf("%s: %s, want %s", step.what, got, step.want)
		}
	}
}

func ExampleSplit() {
	parts, err := Split([]byte("a: 1\n---\nb: 2\n"))
	fmt.Println(len(parts), err)
	// Output: 2 <nil>
}
