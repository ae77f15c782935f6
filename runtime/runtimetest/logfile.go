package runtimetest

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// logFile is the log of a running container in the CRI format. A nil one
// writes nothing.
type logFile struct {
	path string
	file *os.File
}

func (w *World) openLogLocked(c *container) error {
	if !w.cfg.WriteLogs || c.cfg.LogPath == "" || c.sandbox.cfg.LogDirectory == "" {
		return nil
	}
	l := &logFile{path: filepath.Join(c.sandbox.cfg.LogDirectory, c.cfg.LogPath)}
	if err := l.open(); err != nil {
		return err
	}
	c.log = l
	return nil
}

func (l *logFile) open() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return fmt.Errorf("failed to create container log file: %w", err)
	}
	l.file = f
	return nil
}

// reopen follows a rotation: the file of that path is another one now.
func (l *logFile) reopen() error {
	if l == nil {
		return nil
	}
	l.close()
	return l.open()
}

func (l *logFile) write(lines []Line) {
	if l == nil || l.file == nil {
		return
	}
	for _, line := range lines {
		stream := "stdout"
		if line.Stderr {
			stream = "stderr"
		}
		// A full disk stops the log, not the container.
		_, _ = fmt.Fprintf(l.file, "%s %s F %s\n", time.Now().Format("2006-01-02T15:04:05.000000000Z07:00"), stream, line.Text)
	}
}

func (l *logFile) close() {
	if l != nil && l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}

// Print writes lines to the log of the running container of that name, as if
// it had printed them. It says whether there was one.
func (w *World) Print(uid, name string, lines ...Line) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.runningLocked(uid, name)
	if c == nil {
		return false
	}
	c.log.write(lines)
	return true
}
