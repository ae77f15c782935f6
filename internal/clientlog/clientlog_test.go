package clientlog

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
)

func TestLogContextCarriesTheLogOfClientGo(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	logger := logr.FromContextOrDiscard(Context(t.Context(), log)).WithName("reflector").WithValues("node", "edge-7")
	logger.Info("about itself")
	logger.V(4).Info("more about itself")
	if out.Len() != 0 {
		t.Fatalf("logged at level info: %s", &out)
	}
	logger.Error(errors.New("refused"), "watch failed")
	if got := out.String(); !strings.Contains(got, "level=WARN") || !strings.Contains(got, "refused") || !strings.Contains(got, "edge-7") {
		t.Fatalf("logged %s", got)
	}
	logr.FromContextOrDiscard(Context(t.Context(), nil)).Error(nil, "nobody hears this")
}
