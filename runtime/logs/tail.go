package logs

import (
	"bytes"
	"io"
)

const (
	tailBlock = 64 << 10
	// tailSlack bounds how far back the beginning of a line is looked for
	// whose end is among the last lines.
	tailSlack = 4 << 20
)

// tailStart is where in a plain log the last lines begin: the offset to read
// from and, by stream, the offset before which entries do not belong to them.
type tailStart struct {
	offset int64
	from   map[string]int64
}

// has says that the entry of that stream at that offset belongs to the tail.
func (t tailStart) has(stream string, offset int64) bool { return offset >= t.from[stream] }

// findTail looks backwards for the last n whole lines of the wanted streams
// ("" is both). Lines are counted as the container wrote them, not by entries.
func findTail(f io.ReaderAt, size, n int64, stream string) (tailStart, error) {
	t := tailStart{offset: size, from: map[string]int64{Stdout: size, Stderr: size}}
	if n <= 0 {
		return t, nil
	}
	var lines, full int64
	full = -1 // where the count was reached
	seen, closed := map[string]bool{}, map[string]bool{}
	err := backwards(f, size, func(raw []byte, offset int64) bool {
		e, err := ParseEntry(raw)
		if err != nil || (stream != "" && e.Stream != stream) {
			return true
		}
		if full < 0 && !e.Partial && lines == n {
			full = offset
		}
		if full >= 0 {
			// Only what belongs to lines already begun is still wanted.
			if !e.Partial || !seen[e.Stream] {
				closed[e.Stream] = true
			}
			if closed[e.Stream] {
				return !allClosed(seen, closed) && full-offset < tailSlack
			}
		} else if !e.Partial {
			lines++
		}
		seen[e.Stream] = true
		t.from[e.Stream] = offset
		t.offset = min(t.offset, offset)
		return full < 0 || full-offset < tailSlack
	})
	return t, err
}

func allClosed(seen, closed map[string]bool) bool {
	for stream := range seen {
		if !closed[stream] {
			return false
		}
	}
	return true
}

// backwards calls visit for each whole line from the last to the first, with
// its offset, until visit says no.
func backwards(f io.ReaderAt, size int64, visit func(raw []byte, offset int64) bool) error {
	var carry []byte // the beginning of a line whose end was visited, or a torn end
	terminated := false
	for end := size; end > 0; {
		begin := max(0, end-tailBlock)
		block := make([]byte, end-begin, int(end-begin)+len(carry))
		if _, err := f.ReadAt(block, begin); err != nil {
			return err
		}
		block = append(block, carry...)
		for {
			i := bytes.LastIndexByte(block, '\n')
			if i < 0 {
				break
			}
			if terminated && !visit(block[i+1:], begin+int64(i)+1) {
				return nil
			}
			terminated = true
			block = block[:i]
		}
		carry, end = block, begin
	}
	if terminated {
		visit(carry, 0)
	}
	return nil
}
