// Package clientlog keeps client-go's log lines with the agent that they are of.
//
//	ctx = clientlog.Context(ctx, log) // whoever makes requests below ctx
package clientlog

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
)

// Context makes client-go, which takes its logger from the context, write to
// log what happens below ctx: its errors as warnings, all else at level debug
// and below. A nil log is silence. Without it client-go writes to klog's
// output, which belongs to the whole process.
func Context(ctx context.Context, log *slog.Logger) context.Context {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return logr.NewContextWithSlogLogger(ctx, slog.New(demoted{log.Handler()}))
}

// demoted lowers the levels of lines: client-go's "info" is about itself, and
// what it calls an error is mostly a connection that it will make again.
type demoted struct{ slog.Handler }

func demote(level slog.Level) slog.Level {
	if level >= slog.LevelError {
		return slog.LevelWarn
	}
	return level + slog.LevelDebug // -4
}

func (d demoted) Enabled(ctx context.Context, level slog.Level) bool {
	return d.Handler.Enabled(ctx, demote(level))
}

func (d demoted) Handle(ctx context.Context, r slog.Record) error {
	r.Level = demote(r.Level)
	return d.Handler.Handle(ctx, r)
}

func (d demoted) WithAttrs(attrs []slog.Attr) slog.Handler {
	return demoted{d.Handler.WithAttrs(attrs)}
}

func (d demoted) WithGroup(name string) slog.Handler {
	return demoted{d.Handler.WithGroup(name)}
}
