package apiserver

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
)

func TestWarningsAreLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	w := &warnings{log: slog.New(slog.NewTextHandler(&out, nil))}
	for range 3 {
		w.HandleWarningHeaderWithContext(context.Background(), 299, "", "spec.x is deprecated")
	}
	w.HandleWarningHeaderWithContext(context.Background(), 199, "", "for machines")
	if n := strings.Count(out.String(), "\n"); n != 1 || !strings.Contains(out.String(), "spec.x is deprecated") {
		t.Fatalf("%d lines:\n%s", n, &out)
	}
}
