package logs

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// The streams of a container.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// Entry is one line of a log file: a whole line of the container's output, or
// a part of one.
type Entry struct {
	Time   time.Time
	Stream string
	// Partial is true when the line goes on in the next entry of the stream.
	Partial bool
	Text    []byte
}

var errFormat = errors.New("not a CRI log entry")

// ParseEntry reads one line of a log file, without its newline. Text is a part
// of the argument. Tags after the first, which the format reserves, are ignored.
func ParseEntry(line []byte) (Entry, error) {
	stamp, rest, ok1 := bytes.Cut(line, []byte(" "))
	stream, rest, ok2 := bytes.Cut(rest, []byte(" "))
	tags, text, ok3 := bytes.Cut(rest, []byte(" "))
	if !ok1 || !ok2 || !ok3 {
		return Entry{}, fmt.Errorf("%w: too few fields", errFormat)
	}
	at, err := time.Parse(time.RFC3339Nano, string(stamp))
	if err != nil {
		return Entry{}, fmt.Errorf("%w: %w", errFormat, err)
	}
	e := Entry{Time: at, Text: text}
	switch string(stream) {
	case Stdout:
		e.Stream = Stdout
	case Stderr:
		e.Stream = Stderr
	default:
		return Entry{}, fmt.Errorf("%w: stream %q", errFormat, stream)
	}
	tag, _, _ := bytes.Cut(tags, []byte(":"))
	switch string(tag) {
	case "P":
		e.Partial = true
	case "F":
	default:
		return Entry{}, fmt.Errorf("%w: tag %q", errFormat, tags)
	}
	return e, nil
}
