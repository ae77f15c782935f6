package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// commit is what was measured; a "+" says that the tree had changes.
func commit(ctx context.Context) string {
	hash, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	text := strings.TrimSpace(string(hash))
	if changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "-uno").Output(); err != nil || len(changes) > 0 {
		text += "+"
	}
	return text
}

func machine() string {
	model := "unknown CPU"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, found := strings.Cut(string(text), "model name"); found {
			line, _, _ := strings.Cut(rest, "\n")
			model = strings.TrimLeft(line, "\t :")
		}
	}
	return fmt.Sprintf("%d x %s", runtime.NumCPU(), model)
}

func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	avg, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return avg
}
