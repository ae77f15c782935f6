// Package ring keeps the last values of a series in bounded memory.
package ring

// Ring holds the newest values up to its size. Not safe for concurrent use.
type Ring[T any] struct {
	items []T
	next  int // where the next value goes once the ring is full
	size  int
}

// New makes a ring for size values; with size 0 it keeps nothing.
func New[T any](size int) *Ring[T] { return &Ring[T]{size: max(0, size)} }

// Add keeps v, dropping the oldest value when the ring is full.
func (r *Ring[T]) Add(v T) {
	switch {
	case r.size == 0:
	case len(r.items) < r.size: // grows on demand: most series stay short
		r.items = append(r.items, v)
	default:
		r.items[r.next] = v
		r.next = (r.next + 1) % r.size
	}
}

// Items copies the values, oldest first.
func (r *Ring[T]) Items() []T {
	out := make([]T, 0, len(r.items))
	out = append(out, r.items[r.next:]...)
	return append(out, r.items[:r.next]...)
}
