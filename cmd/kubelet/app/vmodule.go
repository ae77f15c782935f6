package app

import (
	"context"
	"log/slog"
	"path"
	"runtime"
	"strings"
	"sync/atomic"

	logsapi "k8s.io/component-base/logs/api/v1"
)

// byFile lets source files say more than the rest: logging.vmodule. A pattern
// fits the name of a file without ".go", or the end of its path when it has a
// slash.
type byFile struct {
	slog.Handler

	verbosity *atomic.Int64 // of the files that no pattern fits; may change
	files     []logsapi.VModuleItem
	most      int64 // the highest verbosity of a pattern
}

// newByFile wraps a handler that lets everything through.
func newByFile(all slog.Handler, verbosity *atomic.Int64, files []logsapi.VModuleItem) slog.Handler {
	b := byFile{Handler: all, verbosity: verbosity, files: files}
	for _, item := range files {
		b.most = max(b.most, int64(item.Verbosity))
	}
	return b
}

func (b byFile) Enabled(_ context.Context, level slog.Level) bool {
	return int64(level) >= -max(b.most, b.verbosity.Load())
}

func (b byFile) Handle(ctx context.Context, r slog.Record) error {
	if int64(r.Level) < -b.verbosityOf(r.PC) {
		return nil
	}
	return b.Handler.Handle(ctx, r)
}

// verbosityOf finds the first pattern that fits the file of a log call.
func (b byFile) verbosityOf(pc uintptr) int64 {
	if len(b.files) == 0 {
		return b.verbosity.Load()
	}
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	file := strings.TrimSuffix(frame.File, ".go")
	for _, item := range b.files {
		name := path.Base(file)
		if parts := strings.Count(item.FilePattern, "/"); parts > 0 {
			name = lastParts(file, parts+1)
		}
		if ok, err := path.Match(item.FilePattern, name); ok && err == nil {
			return int64(item.Verbosity)
		}
	}
	return b.verbosity.Load()
}

func lastParts(file string, n int) string {
	parts := strings.Split(file, "/")
	return strings.Join(parts[max(0, len(parts)-n):], "/")
}

func (b byFile) WithAttrs(attrs []slog.Attr) slog.Handler {
	b.Handler = b.Handler.WithAttrs(attrs)
	return b
}

func (b byFile) WithGroup(name string) slog.Handler {
	b.Handler = b.Handler.WithGroup(name)
	return b
}
