package apiserver

import (
	"context"
	"log/slog"
	"sync"
)

// warnings logs what the API server warns of, each text once: a status that is
// written each minute would repeat it for ever.
type warnings struct {
	log  *slog.Logger
	mu   sync.Mutex
	seen map[string]struct{}
}

// keptWarnings bounds the memory of texts; after that many it begins anew.
const keptWarnings = 100

// HandleWarningHeaderWithContext is called by client-go with each Warning
// header. 299 is the code of warnings for people.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	if code != 299 || text == "" {
		return
	}
	w.mu.Lock()
	_, known := w.seen[text]
	if !known {
		if w.seen == nil || len(w.seen) >= keptWarnings {
			w.seen = map[string]struct{}{}
		}
		w.seen[text] = struct{}{}
	}
	w.mu.Unlock()
	if !known {
		w.log.Warn("the API server warns", "warning", text)
	}
}
