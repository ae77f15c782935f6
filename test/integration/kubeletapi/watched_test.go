package kubeletapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// watched is an output that tells when all that it waits for has come.
type watched struct {
	wants []string
	done  func()

	mu   sync.Mutex
	text string
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text += string(p)
	if w.lacks() == "" {
		w.done()
	}
	return len(p), nil
}

func (w *watched) lacks() string {
	for _, want := range w.wants {
		if !strings.Contains(w.text, want) {
			return want
		}
	}
	return ""
}

func (w *watched) missing() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lacks()
}

func newHTTPClient(cfg *rest.Config) (*http.Client, error) { return rest.HTTPClientFor(cfg) }

type testContext = context.Context

var errNotYet = errors.New("not yet")

// lacking is an error while a text does not have what it should.
func lacking(text, want string, err error) error {
	if err == nil && !strings.Contains(text, want) {
		return fmt.Errorf("%q: no %q", text, want)
	}
	return err
}
