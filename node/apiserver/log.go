package apiserver

import (
	"context"
	"log/slog"

	"nodekit.dev/internal/clientlog"
)

// Context makes client-go, which takes its logger from the context, write to
// log what happens below ctx: its errors as warnings, all else at level debug
// and below. A nil log is silence. Without it client-go writes to klog's
// output, which belongs to the whole process.
func Context(ctx context.Context, log *slog.Logger) context.Context {
	return clientlog.Context(ctx, log)
}
