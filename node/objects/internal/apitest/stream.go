package apitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stream is one open watch.
type stream struct {
	path, name string
	last       uint64 // version of the newest event that was sent
	reader     *io.PipeReader
	writer     *io.PipeWriter

	mu    sync.Mutex
	queue [][]byte
	ended bool
	wake  chan struct{}
}

func newStream(at, selector string) *stream {
	w := &stream{path: at, name: selector, wake: make(chan struct{}, 1)}
	w.reader, w.writer = io.Pipe()
	return w
}

func (w *stream) catchUp(log []event) {
	for _, e := range log {
		if e.version > w.last {
			w.send(e)
		}
	}
}

func (w *stream) send(e event) {
	w.last = e.version
	w.push(e)
}

func (w *stream) push(e event) {
	if !within(w.path, e.path) || !matches(w.name, e.object) {
		return
	}
	w.write(e.kind, e.object)
}

// endState says that all objects of the state were sent.
func (w *stream) endState(collection string, version uint64) {
	apiVersion, kind := kindOf(path.Join(collection, "any"))
	w.write("BOOKMARK", object{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{
		"resourceVersion": strconv.FormatUint(version, 10),
		"annotations":     map[string]any{metav1.InitialEventsAnnotationKey: "true"},
	}})
}

func (w *stream) write(kind string, o object) {
	line, err := json.Marshal(map[string]any{"type": kind, "object": o})
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	w.queue = append(w.queue, line)
	w.mu.Unlock()
	w.poke()
}

func (w *stream) end() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.poke()
}

func (w *stream) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// serve writes the queue until the watch ends or the client goes.
func (w *stream) serve(req *http.Request, gone func()) {
	defer gone()
	for {
		w.mu.Lock()
		lines, ended := w.queue, w.ended
		w.queue = nil
		w.mu.Unlock()
		for _, line := range lines {
			if _, err := w.writer.Write(append(line, '\n')); err != nil {
				return
			}
		}
		if ended {
			_ = w.writer.Close()
			return
		}
		select {
		case <-w.wake:
		case <-req.Context().Done():
			w.writer.CloseWithError(req.Context().Err())
			return
		}
	}
}

// within says whether an object belongs to a collection, that of all
// namespaces included.
func within(collection, at string) bool {
	if path.Dir(at) == collection {
		return true
	}
	parts := strings.Split(at, "/")
	for i, part := range parts {
		if part == "namespaces" && i+2 < len(parts) {
			return path.Dir(strings.Join(append(parts[:i:i], parts[i+2:]...), "/")) == collection
		}
	}
	return false
}

func isCollection(at string) bool {
	base := path.Base(at)
	return strings.HasSuffix(base, "s") && path.Base(path.Dir(at)) != base && !strings.Contains(base, "-")
}

// matches knows the field selectors that the tests use.
func matches(selector string, o object) bool {
	for term := range strings.SplitSeq(selector, ",") {
		field, want, ok := strings.Cut(term, "=")
		if !ok {
			continue
		}
		var at any = map[string]any(o)
		for part := range strings.SplitSeq(field, ".") {
			inner, _ := at.(map[string]any)
			if inner == nil {
				if typed, ok := at.(object); ok {
					inner = typed
				}
			}
			at = inner[part]
		}
		if fmt.Sprint(at) != want {
			return false
		}
	}
	return true
}

func status(req *http.Request, code int, reason string) *http.Response {
	return answer(req, code, object{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code,
		"message": fmt.Sprintf("%s: %s", reason, req.URL.Path),
	})
}

func answer(req *http.Request, code int, o object) *http.Response {
	data, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Request: req, Body: io.NopCloser(bytes.NewReader(data)),
		Header: http.Header{"Content-Type": []string{"application/json"}},
	}
}
