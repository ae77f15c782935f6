package apiserver

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"k8s.io/klog/v2"
)

func TestContextCarriesTheLogOfClientGo(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	logger := klog.FromContext(Context(t.Context(), log)).WithName("reflector").WithValues("node", "edge-7")
	logger.Info("about itself")
	logger.V(4).Info("more about itself")
	if out.Len() != 0 {
		t.Fatalf("logged at level info: %s", &out)
	}
	logger.Error(errors.New("refused"), "watch failed")
	if got := out.String(); !strings.Contains(got, "level=WARN") || !strings.Contains(got, "refused") || !strings.Contains(got, "edge-7") {
		t.Fatalf("logged %s", got)
	}
	klog.FromContext(Context(t.Context(), nil)).Error(nil, "nobody hears this")
}

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
