package app

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2/textlogger"

	"nodekit.dev/internal/tasks"
)

// Log formats of the stock kubelet.
const (
	formatText = "text"
	formatJSON = "json"
)

// logs are the agent's log lines and how many of them there are.
type logs struct {
	*slog.Logger

	verbosity *atomic.Int64
}

// newLogs makes a logger whose verbosity can be changed; source files may have
// a verbosity of their own (logging.vmodule).
func newLogs(sink *logSink, logging logsapi.LoggingConfiguration) logs {
	verbosity := &atomic.Int64{}
	verbosity.Store(int64(logging.Verbosity))
	all := newLogger(sink, logging.Format, math.MaxInt32).Handler()
	return logs{slog.New(newByFile(all, verbosity, logging.VModule)), verbosity}
}

// setVerbosity answers in the stock kubelet's words.
func (l logs) setVerbosity(level string) (string, error) {
	n, err := strconv.ParseUint(level, 10, 31)
	if err != nil {
		return "", fmt.Errorf("failed set klog.logging.verbosity %s: want a whole number, 0 or more", level)
	}
	l.verbosity.Store(int64(n))
	return "successfully set klog.logging.verbosity to " + level, nil
}

// newLogger makes a logger in the stock kubelet's text (klog) or JSON format.
// Verbosity n lets through what klog calls V(n); slog's Debug is V(4).
func newLogger(sink *logSink, format string, verbosity int) *slog.Logger {
	var handler slog.Handler
	if format == formatJSON {
		handler = slog.NewJSONHandler(sink, &slog.HandlerOptions{
			AddSource: true, Level: slog.Level(-verbosity), ReplaceAttr: stockJSON,
		})
	} else {
		klog := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(sink), textlogger.Verbosity(verbosity)))
		handler = logr.ToSlogHandler(klog)
	}
	return slog.New(prompt{handler, sink})
}

// prompt flushes behind warnings and errors: nobody should wait for them, and
// a crash should not take them away.
type prompt struct {
	slog.Handler
	sink *logSink
}

func (p prompt) Handle(ctx context.Context, r slog.Record) error {
	err := p.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelWarn {
		p.sink.Flush()
	}
	return err
}

func (p prompt) WithAttrs(attrs []slog.Attr) slog.Handler {
	return prompt{p.Handler.WithAttrs(attrs), p.sink}
}

func (p prompt) WithGroup(name string) slog.Handler { return prompt{p.Handler.WithGroup(name), p.sink} }

// stockJSON renames slog's own keys to those of the stock JSON format: ts in
// milliseconds, caller as file:line, v for info lines.
func stockJSON(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		return slog.Float64("ts", float64(a.Value.Time().UnixNano())/float64(time.Millisecond))
	case slog.SourceKey:
		if src, ok := a.Value.Any().(*slog.Source); ok {
			return slog.String("caller", trimCaller(src.File)+":"+strconv.Itoa(src.Line))
		}
	case slog.LevelKey:
		if level, ok := a.Value.Any().(slog.Level); ok && level <= slog.LevelInfo {
			return slog.Int("v", -int(level))
		}
		return slog.Attr{}
	}
	return a
}

// trimCaller keeps the last folder and the file.
func trimCaller(path string) string {
	slashes := 0
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			if slashes++; slashes == 2 {
				return path[i+1:]
			}
		}
	}
	return path
}

// logSink buffers log lines and hands them on when flushed. Safe for
// concurrent use.
type logSink struct {
	mu    sync.Mutex
	buf   *bufio.Writer
	dirty chan struct{} // holds one token while something may be buffered
}

func newLogSink(w io.Writer) *logSink {
	return &logSink{buf: bufio.NewWriterSize(w, 64<<10), dirty: make(chan struct{}, 1)}
}

func (s *logSink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.dirty <- struct{}{}:
	default:
	}
	return s.buf.Write(p)
}

// Flush hands on what is buffered. Every way out of the program calls it.
func (s *logSink) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.buf.Flush() // standard error is gone: there is nobody to tell
}

// minFlush keeps a period of nothing from being a busy loop.
const minFlush = 10 * time.Millisecond

// keepFlushing keeps a quiet log from lagging by more than period, until stop
// is called; the lines of a stop under way count too.
func (s *logSink) keepFlushing(ctx context.Context, period time.Duration) (stop func()) {
	group := tasks.New(context.WithoutCancel(ctx))
	group.Go("log-flush", func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-s.dirty: // an agent that says nothing is not woken
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(max(period, minFlush)):
				s.Flush()
			}
		}
	})
	return func() {
		group.Stop()
		_ = group.Wait() // flushing does not fail
	}
}
