package podapitest

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// stream is one open watch.
type stream struct {
	req    *http.Request
	reader *io.PipeReader
	writer *io.PipeWriter

	mu    sync.Mutex
	queue [][]byte
	ended bool
	wake  chan struct{}
}

func (s *Server) watch(req *http.Request) (int, any) {
	from, err := strconv.ParseUint(req.URL.Query().Get("resourceVersion"), 10, 64)
	if err != nil {
		return failure(http.StatusBadRequest, "BadRequest")
	}
	w := &stream{req: req, wake: make(chan struct{}, 1)}
	w.reader, w.writer = io.Pipe()
	if from < s.oldest { // the real server answers 200 and sends this as an event, too
		_, status := failure(http.StatusGone, "Expired")
		w.line("ERROR", status)
		w.end()
	}
	for _, e := range s.log {
		if e.version > from {
			w.push(e)
		}
	}
	if s.short {
		w.end()
	}
	s.watches[w] = true
	go w.serve(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches, w)
	})
	return http.StatusOK, w
}

func (w *stream) push(e Event) {
	if selected(w.req, e.Pod) {
		pod := e.Pod.DeepCopy()
		pod.Kind, pod.APIVersion = "Pod", corev1.SchemeGroupVersion.String()
		w.line(e.Kind, pod)
	}
}

func (w *stream) line(kind string, object any) {
	line, err := json.Marshal(map[string]any{"type": kind, "object": object})
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
func (w *stream) serve(gone func()) {
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
			_ = w.writer.Close() // never fails
			return
		}
		select {
		case <-w.wake:
		case <-w.req.Context().Done():
			w.writer.CloseWithError(w.req.Context().Err())
			return
		}
	}
}
