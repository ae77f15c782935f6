package logs

import "time"

// maxJoined bounds what is held of a line that does not end. Beyond, it is
// handed on in pieces.
const maxJoined = 1 << 20

// line is what a container wrote up to a newline, or a piece of that.
type line struct {
	at     time.Time // of its first part
	stream string
	text   []byte
	first  bool // it is the beginning of what was written
	last   bool // its newline was written too
}

// joiner puts parts together, each stream for itself, so that lines of stdout
// and stderr do not mix.
type joiner struct{ open map[string]*line }

// add returns a line when the entry ended one. The text of a line may be that
// of the entry.
func (j *joiner) add(e Entry) (line, bool) {
	begun := j.open[e.Stream]
	if begun == nil {
		if !e.Partial {
			return line{at: e.Time, stream: e.Stream, text: e.Text, first: true, last: true}, true
		}
		begun = &line{at: e.Time, stream: e.Stream, first: true}
		if j.open == nil {
			j.open = map[string]*line{}
		}
		j.open[e.Stream] = begun
	}
	begun.text = append(begun.text, e.Text...)
	switch {
	case !e.Partial:
		begun.last = true
		delete(j.open, e.Stream)
		return *begun, true
	case len(begun.text) >= maxJoined:
		j.open[e.Stream] = &line{at: begun.at, stream: e.Stream}
		return *begun, true
	}
	return line{}, false
}

// rest returns what never ended, oldest first.
func (j *joiner) rest() []line {
	var out []line
	for _, stream := range []string{Stdout, Stderr} {
		if l := j.open[stream]; l != nil && len(l.text) > 0 {
			out = append(out, *l)
		}
	}
	if len(out) == 2 && out[1].at.Before(out[0].at) {
		out[0], out[1] = out[1], out[0]
	}
	j.open = nil
	return out
}
