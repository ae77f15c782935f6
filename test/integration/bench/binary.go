package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// Stripped builds a program of the main module as releases are built (`make
// build`) and returns its path in dir.
func Stripped(ctx context.Context, dir, pkg string) (string, error) {
	module, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "nodekit.dev").Output()
	if err != nil {
		return "", fmt.Errorf("find the main module: %w", err)
	}
	out := filepath.Join(dir, path.Base(pkg))
	cmd := exec.CommandContext(ctx, "go", "build", "-tags=grpcnotrace", "-trimpath", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Dir = strings.TrimSpace(string(module))
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, text)
	}
	return out, nil
}

// sizeOf is the size of a stripped program, in bytes.
func sizeOf(ctx context.Context, dir, pkg string) (int64, error) {
	file, err := Stripped(ctx, dir, pkg)
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
